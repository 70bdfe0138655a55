/** `sluice simulate`: what limits do to traffic, drawn in the terminal. */

import { RULE } from '../algorithms/algorithm.ts'
import { ABOUTS } from '../algorithms/list.ts'
import { limitFrom } from '../config/config.ts'
import { SluiceError } from '../errors.ts'
import { type Colours, drawn, explained, slicesFor } from './draw.ts'
import { onlyOptions } from './options.ts'
import { type Command, said } from './run.ts'
import { type Contestant, simulate } from './simulate.ts'
import { TRAFFIC, type Traffic, trafficNamed } from './traffic.ts'

const USAGE = `sluice simulate [--traffic NAME]... [--limit JSON]... [--json]

  Plays the same traffic against each algorithm, all with ten per second, and shows what it admits and refuses, slice by slice.

  --traffic NAME   only this one: ${TRAFFIC.map(({ name }) => name).join(', ')};
                   or one of your own: '25/s for 3s', '5/s for 2s, 50/s for 500ms', or the arrivals in milliseconds: 0,10,20
  --limit JSON     this limit instead of the six: '{ "type": "gcra", "rate": "5/s", "burst": 3 }'
  --json           the counts in 60 slices as JSON, for other programs

  It is as wide as the terminal, or as COLUMNS says. NO_COLOR turns colours off.`

/**
 * All that has a pace: what is held until it is released has none, and traffic does not release.
 */
const CONTESTANTS: readonly Contestant[] = ABOUTS.map(({ type, sample, explanation }) => ({
  name: type,
  limit: sample(10, { permits: 10, per: '1s' }),
  explanation,
})).filter(({ limit }) => !limit[RULE].algorithm.untilReleased)

/** For other programs, whatever the terminal is like. */
const SLICES_OF_JSON = 60
const DEFAULT_WIDTH = 80
const NARROWEST = 40

export const simulateCommand: Command = {
  summary: 'plays traffic against the algorithms, and draws what each admits and refuses',
  usage: USAGE,
  run(args) {
    const known = {
      traffic: { type: 'string', multiple: true },
      limit: { type: 'string', multiple: true },
      json: { type: 'boolean' },
    } as const
    const values = onlyOptions(args, known)
    const traffics = values.traffic?.map(chosenTraffic) ?? TRAFFIC
    const contestants = named(values.limit?.map(givenContestant) ?? CONTESTANTS)
    const width = terminalWidth()
    const names = contestants.map(({ name }) => name)
    const results = traffics.map((traffic) => {
      const { lengthMs } = traffic
      const slices = values.json ? { count: SLICES_OF_JSON, lengthMs } : slicesFor(lengthMs, width, names)
      const shown = { ...traffic, lengthMs: slices.lengthMs }
      return { traffic: shown, runs: contestants.map((contestant) => simulate(shown, contestant, slices.count)) }
    })
    if (values.json) return said(JSON.stringify(results.map(({ traffic, runs }) => ({ traffic: traffic.name, runs }))))
    const pictures = results.map(({ traffic, runs }) => drawn(traffic, runs, width, colours()))
    return said([...pictures, explained(results[0]?.runs ?? [], width, colours())].join('\n\n'))
  },
}

function terminalWidth(): number {
  const width = process.stdout.columns ?? Number.parseInt(process.env.COLUMNS ?? '', 10)
  return Math.max(NARROWEST, width || DEFAULT_WIDTH)
}

function chosenTraffic(text: string): Traffic {
  const traffic = trafficNamed(text)
  if (traffic !== undefined) return traffic
  const names = TRAFFIC.map(({ name }) => name).join(', ')
  throw new SluiceError('CONFIG', `--traffic '${text}' is none of ${names}, nor '25/s for 3s', nor milliseconds such as 0,10,20`)
}

function givenContestant(text: string): Contestant {
  const limit = limitFrom(parsedJson(text))
  return { name: limit.type, limit, explanation: JSON.stringify(limit) }
}

/** Of several limits of one type each has a number. */
function named(contestants: readonly Contestant[]): Contestant[] {
  return contestants.map((contestant, k) => {
    const before = contestants.slice(0, k).filter(({ name }) => name === contestant.name).length
    return before === 0 ? contestant : { ...contestant, name: `${contestant.name} ${before + 1}` }
  })
}

function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new SluiceError('CONFIG', `--limit '${text}' must be JSON, such as '{ "type": "gcra", "rate": "5/s", "burst": 3 }'`)
  }
}

function colours(): Colours {
  const painted = process.stdout.isTTY && !process.env.NO_COLOR
  const paint = (code: number) => (text: string) => (painted ? `\u001b[${code}m${text}\u001b[0m` : text)
  return { admitted: paint(32), refused: paint(31), quiet: paint(2), strong: paint(1) }
}
