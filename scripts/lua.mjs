// `npm run lua`: the scripts that Redis runs, composed from their parts, so that the line number of an error leads somewhere.
//
//   npm run lua                     writes every script to tmp/lua
//   npm run lua -- gcra slidingLog  prints the one for these algorithms, with line numbers
//   npm run lua -- '<an error>'     prints the place that an error of Redis names
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'
import { luaSources } from './embed-lua.mjs'
import { fail, root } from './run.mjs'

const FOLDER = 'tmp/lua'
/** Lines that are shown before and after the place of an error. */
const AROUND = 6

/** All scripts that a server may come to hold: their algorithms, text and the name that Redis gives them. */
export async function composedScripts() {
  const { scriptFor, FORMATS } = await sources()
  const types = FORMATS.map(({ algorithm }) => algorithm.type)
  const pairs = types.flatMap((a, k) => types.slice(k + 1).map((b) => [a, b]))
  return [...types.map((type) => [type]), ...pairs, types].map((held) => {
    const { text } = scriptFor(held)
    return { types: held, text, sha1: createHash('sha1').update(text).digest('hex') }
  })
}

/** The place that a message of Redis names, or undefined if it names none: it has the script's name and a line of it. */
export function placeOf(scripts, message) {
  const script = scripts.find(({ sha1 }) => message.includes(sha1))
  const line = Number(/user_script:(\d+)/.exec(message)?.[1])
  if (script === undefined || !(line >= 1)) return undefined
  const lines = script.text.split('\n')
  return { types: script.types, line, text: lines[line - 1], source: sourceOf(lines, line) }
}

/** Where a line was written: the same line in a file, or else the file with the function whose heading stands above it. */
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

/** The modules as they are now, whether they are built or not. */
async function sources() {
  const input = `export { scriptFor } from '/script.ts'\nexport { FORMATS } from '/formats.ts'`
  const entry = { name: 'entry', resolveId: (id) => ENTRY[id], load: (id) => (id === ENTRY.entry ? input : undefined) }
  const bundle = await rolldown({ input: 'entry', plugins: [entry], cwd: root })
  const { output } = await bundle.generate({ format: 'esm' })
  await bundle.close()
  return import(`data:text/javascript;base64,${Buffer.from(output[0].code).toString('base64')}`)
}

const ENTRY = { entry: '\0entry', '/script.ts': `${root}src/stores/redis/script.ts`, '/formats.ts': `${root}src/algorithms/formats.ts` }

function numbered(text, from = 1, to = Number.POSITIVE_INFINITY, marked = 0) {
  const lines = text.split('\n').map((line, k) => ({ line, number: k + 1 }))
  const shown = lines.filter(({ number }) => number >= from && number <= to)
  return shown.map(({ line, number }) => `${number === marked ? '>' : ' '}${`${number}`.padStart(5)}  ${line}`).join('\n')
}

function writeAll(scripts) {
  mkdirSync(`${root}${FOLDER}`, { recursive: true })
  for (const { types, text, sha1 } of scripts) {
    const name = `${types.length > 2 ? 'all' : types.join('-')}.lua`
    writeFileSync(`${root}${FOLDER}/${name}`, text)
    console.log(`${sha1}  ${FOLDER}/${name}`)
  }
}

function printScript(scripts, wanted) {
  const types = scripts.at(-1).types
  const unknown = wanted.find((name) => !types.includes(name))
  if (unknown !== undefined) fail(`${unknown} is no algorithm, and no error that names a line: the algorithms are ${types.join(', ')}.`)
  const held = wanted.length > 2 ? types : types.filter((type) => wanted.includes(type))
  console.log(numbered(scripts.find((script) => script.types.join() === held.join()).text))
}

function printPlace(scripts, message) {
  const place = placeOf(scripts, message)
  if (place === undefined)
    fail('No script of this version has that name: the error is from another version, or from a script that is not ours.')
  const { text } = scripts.find(({ types }) => types === place.types)
  console.log(`line ${place.line} of the script for ${place.types.join(', ')}: ${place.source}\n`)
  console.log(numbered(text, place.line - AROUND, place.line + AROUND, place.line))
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const wanted = process.argv.slice(2)
  const scripts = await composedScripts()
  if (wanted.length === 0) writeAll(scripts)
  else if (wanted.join(' ').includes('user_script:')) printPlace(scripts, wanted.join(' '))
  else printScript(scripts, wanted)
}
