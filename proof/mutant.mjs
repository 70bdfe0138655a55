// A mutant, whatever its language.

/**
 * A constant becomes its successor, or where a double has none what is before it; 1 also becomes 0.
 */
export function otherNumbers(value) {
  if (value === 1) return [2, 0]
  return [value < 2 ** 53 ? value + 1 : value - 1]
}

/**
 * Mutants from changes { start, end, replacement, scope }. A mutant is known by its file, its
 * function, and its line before and after the change, not by its place: so a proof about it stays
 * valid when something else in the file changes.
 */
export function mutantsOf(file, text, changes) {
  const seen = new Map()
  return changes
    .sort((a, b) => a.start - b.start || a.end - b.end)
    .map(({ start, end, replacement, scope }) => {
      const from = text.lastIndexOf('\n', start) + 1
      const to = endOfLine(text, end)
      const before = oneLine(text.slice(from, to))
      const after = oneLine(text.slice(from, start) + replacement + text.slice(end, to))
      const name = `${file} ${scope}: ${before} => ${after}`
      const nth = (seen.get(name) ?? 0) + 1
      seen.set(name, nth)
      const id = nth === 1 ? name : `${name} (${nth})`
      return {
        id,
        file,
        scope,
        before,
        after,
        nth,
        line: text.slice(0, start).split('\n').length,
        text: text.slice(0, start) + replacement + text.slice(end),
      }
    })
}

function endOfLine(text, from) {
  const end = text.indexOf('\n', from)
  return end < 0 ? text.length : end
}

const oneLine = (text) => text.replace(/\s+/g, ' ').trim()
