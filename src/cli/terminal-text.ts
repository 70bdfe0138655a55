/** Times as people say them, and texts that fit a terminal. */

const UNITS = [
  { name: 'd', ms: 86_400_000 },
  { name: 'h', ms: 3_600_000 },
  { name: 'min', ms: 60_000 },
  { name: 's', ms: 1_000 },
] as const

/** `1 d 3 h`, `52 min`, `3.2 s`, `850 ms`: what matters of a time, to about a hundredth. */
export function inWords(ms: number): string {
  if (ms < 1_000) return `${Number(ms.toPrecision(3))} ms`
  if (ms < 60_000) return `${Number((ms / 1_000).toPrecision(3))} s`
  const k = UNITS.findIndex((unit) => ms >= unit.ms)
  const { name, ms: unitMs } = UNITS[k] as (typeof UNITS)[number]
  const below = UNITS[k + 1] as (typeof UNITS)[number]
  const whole = Math.floor(ms / unitMs)
  const rest = Math.floor((ms - whole * unitMs) / below.ms)
  return rest === 0 || whole >= 10 ? `${whole} ${name}` : `${whole} ${name} ${rest} ${below.name}`
}

/** Lines of at most so many characters. Words that are longer stay whole. */
export function wrapped(text: string, width: number, indent = ''): string[] {
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const last = lines.at(-1)
    if (last !== undefined && last.length + 1 + word.length <= width) lines[lines.length - 1] = `${last} ${word}`
    else lines.push(`${lines.length === 0 ? '' : indent}${word}`)
  }
  return lines
}
