// `npm run lua`: the script that Redis runs, composed from its parts, so that the line number of an
// error leads somewhere.
//
//   npm run lua                  writes it to tmp/lua/sluice.lua
//   npm run lua -- '<an error>'  prints the place that an error of Redis names
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'
import { luaSources } from './embed-lua.mjs'
import { fail, root } from './run.mjs'

const FOLDER = 'tmp/lua'
/** Lines that are shown before and after the place of an error. */
const AROUND = 6

/** The script that a server holds of this version: its text, and the name that Redis gives it. */
export async function composedScript() {
  const { script } = await sources()
  const { text } = script()
  return { text, sha1: createHash('sha1').update(text).digest('hex') }
}

/**
 * The place that a message of Redis names, or undefined if it names none: it has the script's name
 * and a line of it.
 */
export function placeOf(script, message) {
  const line = Number(/user_script:(\d+)/.exec(message)?.[1])
  if (!message.includes(script.sha1) || !(line >= 1)) return undefined
  const lines = script.text.split('\n')
  return { line, text: lines[line - 1], source: sourceOf(lines, line) }
}

/**
 * Where a line was written: the same line in a file, or else the file with the function whose
 * heading stands above it.
 */
function sourceOf(lines, line) {
  const same = Object.values(luaSources()).flatMap((path) => placesIn(path, lines[line - 1]))
  if (same.length === 1) return same[0]
  const heading = lines.slice(0, line).findLast((each) => FUNCTION.test(each)) ?? ''
  const [, declared, assigned] = FUNCTION.exec(heading) ?? []
  const files = Object.values(luaSources()).filter((path) => placesIn(path, heading).length > 0)
  return `near ${declared ?? assigned} in ${files[0] ?? 'what is generated from src/algorithms (scripts/lua)'}`
}

const FUNCTION = /^(?:local )?function ([\w.]+)|^(?:local )?([\w.[\]]+) = function/

function placesIn(path, text) {
  const lines = read(path).split('\n')
  return lines.flatMap((line, k) => (line.trim() === text.trim() ? [`${path}:${k + 1}`] : []))
}

const read = (path) => readFileSync(`${root}${path}`, 'utf8')

/** The module as it is now, whether it is built or not. */
async function sources() {
  const bundle = await rolldown({ input: `${root}src/stores/redis/script.ts`, cwd: root })
  const { output } = await bundle.generate({ format: 'esm' })
  await bundle.close()
  return import(`data:text/javascript;base64,${Buffer.from(output[0].code).toString('base64')}`)
}

function numbered(text, from, to, marked) {
  const lines = text.split('\n').map((line, k) => ({ line, number: k + 1 }))
  const shown = lines.filter(({ number }) => number >= from && number <= to)
  return shown.map(({ line, number }) => `${number === marked ? '>' : ' '}${`${number}`.padStart(5)}  ${line}`).join('\n')
}

function write({ text, sha1 }) {
  mkdirSync(`${root}${FOLDER}`, { recursive: true })
  writeFileSync(`${root}${FOLDER}/sluice.lua`, text)
  console.log(`${sha1}  ${FOLDER}/sluice.lua`)
}

function printPlace(script, message) {
  const place = placeOf(script, message)
  if (place === undefined)
    fail('That names no line of the script of this version: it is from another version, or from a script that is not ours.')
  console.log(`line ${place.line} of the script: ${place.source}\n`)
  console.log(numbered(script.text, place.line - AROUND, place.line + AROUND, place.line))
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const message = process.argv.slice(2).join(' ')
  const script = await composedScript()
  if (message === '') write(script)
  else printPlace(script, message)
}
