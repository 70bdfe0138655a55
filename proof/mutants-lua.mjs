// Every mutant of a Lua source: one operator or constant changed. Strings and comments are left
// alone.
import { mutantsOf, otherNumbers } from './mutant.mjs'

const OTHER_TOKENS = {
  '<': ['<=', '>='],
  '<=': ['<', '>'],
  '>': ['>=', '<='],
  '>=': ['>', '<'],
  '==': ['~='],
  '~=': ['=='],
  '+': ['-'],
  '-': ['+'],
  '*': ['/'],
  '/': ['*'],
  '%': ['*'],
  '^': ['*'],
  and: ['or'],
  or: ['and'],
  true: ['false'],
  false: ['true'],
  'math.min': ['math.max'],
  'math.max': ['math.min'],
  'math.floor': ['math.ceil'],
  'math.ceil': ['math.floor'],
}

/** What the prelude calls them; only where they are called. */
const OTHER_CALLS = { min: ['max'], max: ['min'], floor: ['ceil'], ceil: ['floor'] }

const TOKEN =
  /(?<skipped>--[^\n]*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|\s+)|(?<number>\d+)|(?<word>[A-Za-z_][\w.]*)|(?<operator><=|>=|==|~=|\.\.\.|\.\.|.)/gs

export function mutantsOfLua(file, text) {
  const tokens = tokensOf(text)
  const changes = tokens.flatMap((token, k) => [...changesOf(token, tokens[k - 1], tokens[k + 1]), ...branchesOf(tokens, k)])
  return mutantsOf(file, text, changes)
}

/**
 * Tokens { kind, value, start, end, scope }; the scope is the function whose definition begins in
 * the first column.
 */
function tokensOf(text) {
  const tokens = []
  let scope = ''
  for (const match of text.matchAll(TOKEN)) {
    const [value] = match
    const start = match.index
    const [kind] = Object.entries(match.groups).find(([, found]) => found !== undefined)
    if (kind === 'skipped') continue
    if (/^(local |function |end\b)/.test(text.slice(start, start + 9)) && (start === 0 || text[start - 1] === '\n')) {
      scope = /^(?:local )?function (?:\w+\.)?(\w+)/.exec(text.slice(start))?.[1] ?? ''
    }
    tokens.push({ kind, value, start, end: start + value.length, scope })
  }
  return tokens
}

function changesOf({ kind, value, start, end, scope }, before, after) {
  const changed = (replacements) => replacements.map((replacement) => ({ start, end, replacement, scope }))
  if (kind === 'number') return changed(otherNumbers(Number(value)).map(String))
  if (value === 'not') return [{ start, end: after.start, replacement: '', scope }]
  if (value === '-' && isUnaryAfter(before)) return changed([''])
  if (after?.value === '(' && OTHER_CALLS[value] !== undefined) return changed(OTHER_CALLS[value])
  return changed(OTHER_TOKENS[value] ?? [])
}

/** A minus behind something that is no value is a sign. */
function isUnaryAfter({ kind, value }) {
  return kind === 'operator' ? !')]}'.includes(value) : value === 'return' || value === 'and' || value === 'or'
}

/** `if` and `elseif`: the condition as true and as false. */
function branchesOf(tokens, k) {
  const { value, scope } = tokens[k]
  if (value !== 'if' && value !== 'elseif') return []
  const then = tokens.findIndex((token, at) => at > k && token.value === 'then')
  const { start } = tokens[k + 1]
  return ['true', 'false'].map((replacement) => ({ start, end: tokens[then - 1].end, replacement, scope }))
}
