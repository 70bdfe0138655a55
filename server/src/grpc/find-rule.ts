/** Which rule of a domain is meant by a descriptor. */
import type { DescriptorRule } from '../config/config.ts'
import type { DescriptorEntry } from './messages.ts'

/**
 * Goes down the tree with the entries, one level for each: the exact value first, then wildcards in
 * the order of the file, then the key alone. There is no way back up. A rule counts only if the
 * entries end at it.
 */
export function ruleFor(rules: readonly DescriptorRule[], entries: readonly DescriptorEntry[]): DescriptorRule | undefined {
  let level = rules
  let rule: DescriptorRule | undefined
  for (const entry of entries) {
    rule = ruleOfEntry(level, entry)
    if (rule === undefined) return undefined
    level = rule.descriptors
  }
  return rule
}

function ruleOfEntry(rules: readonly DescriptorRule[], { key, value }: DescriptorEntry): DescriptorRule | undefined {
  const ofKey = rules.filter((rule) => rule.key === key)
  return (
    ofKey.find((rule) => !rule.wildcard && rule.value === value) ??
    ofKey.find((rule) => rule.wildcard && value.startsWith(rule.value as string)) ??
    ofKey.find((rule) => rule.value === undefined)
  )
}

/** The entries as the key to count under. Lengths keep apart what signs between them could not. */
export function keyOf(entries: readonly DescriptorEntry[]): string {
  return entries.map(({ key, value }) => `${key.length}:${key}${value.length}:${value}`).join('')
}

/**
 * Such a key for people: `tenant = t1, verb = write`. One that was too long is a digest, and stays
 * what it is.
 */
export function entriesText(key: string): string {
  const parts: string[] = []
  for (let at = 0; at < key.length; ) {
    const colon = key.indexOf(':', at)
    const length = Number(key.slice(at, colon))
    if (colon < 0 || !Number.isInteger(length) || colon + 1 + length > key.length) return key
    parts.push(key.slice(colon + 1, colon + 1 + length))
    at = colon + 1 + length
  }
  return parts.flatMap((part, k) => (k % 2 === 1 ? [] : [parts[k + 1] === '' ? part : `${part} = ${parts[k + 1]}`])).join(', ')
}
