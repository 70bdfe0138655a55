#!/usr/bin/env node
import { parseArgs } from 'node:util'
import { ABOUTS } from '../algorithms/abouts.ts'
import { limitFrom } from '../config/config.ts'
import { SluiceError, type SluiceErrorCode } from '../errors.ts'
import { inspectCommand } from './inspect.ts'
import { type Colours, type Contestant, drawn, simulate } from './simulate.ts'
import { TRAFFIC, type Traffic, trafficNamed } from './traffic.ts'

const USAGE = `sluice simulate [--traffic NAME]... [--limit JSON]... [--json]

  Plays the same traffic against each algorithm, all with ten per second, and shows what it admits and refuses, slice by slice.

  --traffic NAME   only this one: ${TRAFFIC.map(({ name }) => name).join(', ')};
                   or the arrivals themselves in milliseconds: 0,10,20
  --limit JSON     this limit instead of those: '{ "type": "gcra", "rate": "5/s", "burst": 3 }'
  --json           the counts as JSON, for other programs

sluice inspect KEY [--url redis://localhost:6379] [--json]

  Reads one key of Redis, such as sluice:api:{user:42}:default, and says what it means now. In a cluster any node will do. It needs one of
  the packages redis, ioredis, iovalkey beside it, and writes nothing.`

/** Errors that no other command line would cure. */
const OF_THE_SERVER: readonly SluiceErrorCode[] = ['STORE', 'UNSUPPORTED']

const OF_THE_SERVICE = ['serve', 'check', 'schema']

const CONTESTANTS: readonly Contestant[] = ABOUTS.map(({ type, sample, explanation }) => ({
  name: type,
  limit: sample(10, { permits: 10, per: '1s' }),
  explanation,
}))

const SLICES = 60

async function main(args: readonly string[]): Promise<number> {
  const [command, ...rest] = args
  if (command === undefined || command === '--help' || command === '-h' || command === 'help') return said(USAGE)
  try {
    if (command === 'simulate') return simulateCommand(rest)
    if (command === 'inspect') return said(await inspectCommand(rest, () => USAGE))
    if (OF_THE_SERVICE.includes(command)) return elsewhere(command)
    return refused(`there is no command '${command}'`)
  } catch (error) {
    if (error instanceof SluiceError && OF_THE_SERVER.includes(error.code)) return failed(error.message)
    if (error instanceof SluiceError || isParseError(error)) return refused(error.message)
    throw error
  }
}

function simulateCommand(args: readonly string[]): number {
  const known = {
    traffic: { type: 'string', multiple: true },
    limit: { type: 'string', multiple: true },
    json: { type: 'boolean' },
    help: { type: 'boolean', short: 'h' },
  } as const
  const { values } = parseArgs({ args: [...args], options: known })
  if (values.help) return said(USAGE)
  const traffics = values.traffic?.map(chosenTraffic) ?? TRAFFIC
  const contestants = values.limit?.map(givenContestant) ?? CONTESTANTS
  const results = traffics.map((traffic) => ({ traffic, runs: contestants.map((contestant) => simulate(traffic, contestant, SLICES)) }))
  if (values.json) return said(JSON.stringify(results.map(({ traffic, runs }) => ({ traffic: traffic.name, runs }))))
  return said(results.map(({ traffic, runs }) => drawn(traffic, runs, colours())).join('\n\n'))
}

function chosenTraffic(text: string): Traffic {
  const traffic = trafficNamed(text)
  if (traffic !== undefined) return traffic
  const names = TRAFFIC.map(({ name }) => name).join(', ')
  throw new SluiceError('CONFIG', `--traffic '${text}' is none of ${names}, nor milliseconds such as 0,10,20`)
}

function givenContestant(text: string): Contestant {
  const limit = limitFrom(parsedJson(text))
  return { name: limit.type, limit, explanation: JSON.stringify(limit) }
}

function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new SluiceError('CONFIG', `--limit '${text}' must be JSON, such as '{ "type": "gcra", "rate": "5/s", "burst": 3 }'`)
  }
}

function isParseError(error: unknown): error is Error {
  return error instanceof Error && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS')
}

function colours(): Colours {
  const painted = process.stdout.isTTY && !process.env.NO_COLOR
  const paint = (code: number) => (text: string) => (painted ? `\u001b[${code}m${text}\u001b[0m` : text)
  return { admitted: paint(32), refused: paint(31), quiet: paint(2), strong: paint(1) }
}

function said(text: string): number {
  console.log(text)
  return 0
}

function elsewhere(command: string): number {
  console.error(`sluice: '${command}' is a command of the service, which this package does not hold.

In a clone of the project, \`npm start -- sluice.yaml\` installs, builds and runs the service. After \`npm run build:server\` its command line is
\`node server/dist/server/src/main.js ${command}\`. deploy/Dockerfile makes an image of it.`)
  return 2
}

function refused(reason: string): number {
  return failed(`${reason}\n\n${USAGE}`)
}

function failed(reason: string): number {
  console.error(`sluice: ${reason}`)
  return 2
}

process.exitCode = await main(process.argv.slice(2))
