#!/usr/bin/env node
import { parseArgs } from 'node:util'
import { gcra } from '../algorithms/gcra/gcra.ts'
import { tokenBucket } from '../algorithms/token-bucket/token-bucket.ts'
import { type Colours, type Contestant, drawn, simulate } from './simulate.ts'
import { TRAFFIC } from './traffic.ts'

const USAGE = `sluice simulate [--traffic NAME] [--json]

  Plays the same traffic against each algorithm and shows what it admits and refuses, slice by slice.

  --traffic NAME   only this one: ${TRAFFIC.map(({ name }) => name).join(', ')}
  --json           the counts as JSON, for other programs`

const CONTESTANTS: readonly Contestant[] = [
  { name: 'gcra', limit: gcra({ rate: '10/s', burst: 10 }), explanation: 'ten at once after idling, then one every 100 ms' },
  {
    name: 'tokenBucket',
    limit: tokenBucket({ capacity: 20, refill: '10/s' }),
    explanation: 'a bucket of twenty saves up more, then the same ten a second',
  },
]

const SLICES = 60

function main(args: readonly string[]): number {
  const [command, ...rest] = args
  if (command === undefined || command === '--help' || command === 'help') return said(USAGE)
  if (command !== 'simulate') return refused(`there is no command '${command}'`)
  return simulateCommand(rest)
}

function simulateCommand(args: readonly string[]): number {
  const options = parsed(args)
  if (typeof options === 'string') return refused(options)
  if (options.help) return said(USAGE)
  const chosen = TRAFFIC.filter(({ name }) => options.traffic === undefined || name === options.traffic)
  if (chosen.length === 0) {
    return refused(`--traffic '${options.traffic}' is none of ${TRAFFIC.map(({ name }) => name).join(', ')}`)
  }
  const runs = chosen.map((traffic) => ({ traffic, runs: CONTESTANTS.map((contestant) => simulate(traffic, contestant, SLICES)) }))
  if (options.json) return said(JSON.stringify(runs.map(({ traffic, runs }) => ({ traffic: traffic.name, runs }))))
  return said(runs.map(({ traffic, runs }) => drawn(traffic, runs, colours())).join('\n\n'))
}

/** The options, or what is wrong with them. */
function parsed(args: readonly string[]): { traffic?: string; json?: boolean; help?: boolean } | string {
  try {
    const known = { traffic: { type: 'string' }, json: { type: 'boolean' }, help: { type: 'boolean', short: 'h' } } as const
    return parseArgs({ args: [...args], options: known }).values
  } catch (error) {
    return (error as Error).message
  }
}

function colours(): Colours {
  const paint = (code: number) => (text: string) =>
    process.stdout.isTTY && !process.env['NO_COLOR'] ? `\u001b[${code}m${text}\u001b[0m` : text
  return { admitted: paint(32), refused: paint(31), quiet: paint(2), strong: paint(1) }
}

function said(text: string): number {
  console.log(text)
  return 0
}

function refused(reason: string): number {
  console.error(`sluice: ${reason}\n\n${USAGE}`)
  return 2
}

process.exitCode = main(process.argv.slice(2))
