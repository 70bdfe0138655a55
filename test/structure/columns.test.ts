/**
 * Prose has lines of at most 100 columns: documents, and comments in code. Code may have 140
 * (biome.json).
 *
 * Exempt are tables, headings, blocks of code and of HTML, and a line that no space would make
 * shorter. So is a line of a comment that is indented by three spaces or more: that is a command or
 * a table, which two lines would break. So are documents in Chinese, where a line break inside a
 * sentence is shown as a space, and files that a program writes.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseSync } from 'rolldown/utils'
import { describe, expect, test } from 'vitest'

const WIDTH = 100
const root = fileURLToPath(new URL('../../', import.meta.url))
const WRITTEN_BY_PROGRAMS =
  /(?:^|\/)RESULTS[^/]*\.md$|^proof\/(?:REPORT|SOAK|STORM)\.md$|\.generated\.ts$|^bench\/(?:floor\.mjs|minimal\.lua)$/
const files = execFileSync('git', ['ls-files'], { cwd: root, encoding: 'utf8' })
  .trim()
  .split('\n')
  .filter((path) => !WRITTEN_BY_PROGRAMS.test(path) && !path.endsWith('.zh-CN.md'))

interface Line {
  readonly text: string
  readonly number: number
}

const linesOf = (text: string): Line[] => text.split('\n').map((line, k) => ({ text: line, number: k + 1 }))

/** Too long, though it has a space where it could be broken. Code and links are one word each. */
function isTooLong({ text }: Line): boolean {
  if ([...text].length <= WIDTH) return false
  const prose = text.replace(/`[^`]+`|\[[^\][]*\]\([^()\s]*\)/g, 'word').trim()
  return prose.replace(/^(?:[-*>#/]+|\d+\.) +/, '').includes(' ')
}

/** Lines of paragraphs and lists. */
function proseOf(page: string): Line[] {
  let isCode = false
  let isHtml = false
  return linesOf(page).filter(({ text }) => {
    const isFence = /^\s*(?:```|~~~)/.test(text)
    if (isFence) isCode = !isCode
    if (/^\s*</.test(text)) isHtml = true
    if (text.trim() === '') isHtml = false
    return !isFence && !isCode && !isHtml && !/^\s*(?:\||#{1,6} |!\[|\[[^\]]*\]: )/.test(text)
  })
}

/** Instructions to tools stand on one line, and what an example prints stands as it is printed. */
const IS_VERBATIM = /biome-ignore|@ts-|<reference|yaml-language-server|@vitest|\S {3,}\S|^\W+ {3,}\S|^\W*[\w-]+: [[{"']/

/** Lines with a comment, in TypeScript and JavaScript. */
function commentsOfScript(path: string, code: string): Line[] {
  const lang = /\.d\.m?ts$/.test(path) ? 'dts' : /ts$/.test(path) ? 'ts' : 'js'
  const prints = path.startsWith('examples/') ? code.indexOf('\n// prints') : -1
  const { comments } = parseSync(path, code, { lang })
  let end = -1
  return linesOf(code).filter(({ text }) => {
    const start = end + 1
    end = start + text.length
    if (text.length <= WIDTH || (prints >= 0 && start > prints)) return false
    return comments.some((comment) => comment.start < end && comment.end > start)
  })
}

function commentsOfRows(sign: string, text: string): Line[] {
  return linesOf(text).filter((line) => line.text.trimStart().startsWith(sign))
}

function proseLinesOf(path: string, text = readFileSync(join(root, path), 'utf8')): Line[] {
  if (path.endsWith('.md')) return proseOf(text)
  if (/\.(?:ts|mts|mjs|cjs)$/.test(path)) return commentsOfScript(path, text).filter((line) => !IS_VERBATIM.test(line.text))
  if (path.endsWith('.lua')) return commentsOfRows('--', text).filter((line) => !IS_VERBATIM.test(line.text))
  if (/\.ya?ml$|Dockerfile$/.test(path)) return commentsOfRows('#', text).filter((line) => !IS_VERBATIM.test(line.text))
  return []
}

describe(`lines of at most ${WIDTH} columns`, () => {
  test('in all documents and comments', () => {
    const tooLong = files.flatMap((path) => {
      const long = proseLinesOf(path).filter(isTooLong)
      return [...new Set(long.map(({ text, number }) => `${path}:${number} has ${[...text].length} columns`))]
    })
    expect(tooLong).toEqual([])
  })

  const WORDS = 'word '.repeat(30).trim()
  test.each([
    ['a paragraph', WORDS],
    ['a list', `- ${WORDS}`],
    ['a table', `| ${WORDS} |`, 'may be longer'],
    ['a block of code', `\`\`\`\n${WORDS}\n\`\`\``, 'may be longer'],
    ['an address', `- https://example.com/${'x'.repeat(120)}`, 'may be longer'],
  ])('%s', (_, page, verdict?: string) => {
    expect(proseOf(page).some(isTooLong)).toBe(verdict === undefined)
  })

  test.each([
    ['a comment on its own', `// ${WORDS}`],
    ['a comment behind code', `const a = 1 // ${WORDS}`],
    ['a block comment', `/**\n * ${WORDS}\n */`],
    ['code', `const a = '${WORDS}'`, 'may be longer'],
  ])('%s', (_, code, verdict?: string) => {
    expect(commentsOfScript('a.ts', code).some(isTooLong)).toBe(verdict === undefined)
  })

  test.each([
    ['a.yaml', `# ${WORDS}`],
    ['a.yaml', `#   ${WORDS}`, 'may be longer'],
    ['Dockerfile', `#   ${WORDS}`, 'may be longer'],
    ['a.ts', `//   ${WORDS}`, 'may be longer'],
  ])('a command in a comment stands on one line, in %s: %s', (path, text, verdict?: string) => {
    expect(proseLinesOf(path, text).some(isTooLong)).toBe(verdict === undefined)
  })
})
