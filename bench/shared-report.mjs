// RESULTS-shared.md.
import { SCENARIOS } from './scenarios.mjs'
import { SHARED_GOALS, toFloor, toMemory, toOther, twoToOne } from './shared-goals.mjs'
import { millionPerSecond, spreadOf } from './statistics.mjs'
import { plain, spread, table } from './tables.mjs'

/** Not the store, but the least that threads on one key must do: shared-bare.mjs. */
const BARE = 'hot-allowed bare'
const WHERE = ['keys-10k', 'hot-allowed', 'hot-denied']

export function sharedReport(results, { node, cpu, cores, load }, { rounds, roundMs }) {
  return `# Results of \`npm run bench:shared\`

Written by the bench, not by hand. Node ${node}, ${cpu}, ${cores} cores. Medians of ${rounds} rounds of ${roundMs} ms, quartiles in parentheses; ratios are
taken within each round. Every part is a process of its own. \`gcra\`, \`tryAcquire\`, on the real clock. The load of the machine when it began was
${load}: two threads need two cores that nobody else uses.

## Goals

${table(['goal', 'target', 'is', ''], SHARED_GOALS.map(goalRow(results)), '---')}

## One thread, beside the memory store

${table(
  ['', 'memory, million calls/s', 'to the floor', 'shared, million calls/s', 'to the floor', 'shared to memory'],
  WHERE.map((scenario) => [
    SCENARIOS[scenario].title,
    ...['memory', 'shared'].flatMap((subject) => [
      spread(millionPerSecond(results[`shared-speed ${scenario} ${subject}`][subject])),
      spread(toFloor(results, scenario, subject)),
    ]),
    plain(toMemory(results, scenario)),
  ]),
)}

## Two threads

${table(
  ['', 'one thread, million calls/s', 'two threads together', 'two to one', 'lost races'],
  [...WHERE.map((scenario) => [SCENARIOS[scenario].title, scenario]), ['one word: the clock, a bare compare and swap', BARE]].map(
    ([title, name]) => {
      const { one, two, collisions } = results[`shared-threads ${name}`]
      const million = (calls) => spread(spreadOf(calls.map((each) => each / 1e6)))
      return [title, million(one), million(two), spread(twoToOne(results, name)), collisions.toLocaleString('en')]
    },
  ),
)}

The last line is what threads on one key must do at least, without a wait after a lost race.

## One call at a time

${table(
  ['', 'microseconds', 'shared is faster by'],
  [
    ['shared', 'shared memory, in the thread that asks'],
    ['message', 'a message to the main thread and back'],
    ['cluster', "rate-limiter-flexible's cluster limiter: a message to the main process and back"],
  ].map(([name, title]) => {
    const us = results['shared-messages hot-allowed'][name].map((ns) => ns / 1000)
    return [title, spread(spreadOf(us)), name === 'shared' ? '' : spread(toOther(results, name))]
  }),
)}

## Bytes for each key, beyond the key

The key itself is not kept: 64 bits stand for it. All memory is taken when the store is made.

${memoryTable(results['shared-memory keys'])}
`
}

function goalRow(results) {
  return ({ title, target, figure, reached }) => {
    const value = figure(results)
    return [title, target, plain(value), reached(value) ? 'reached' : '**not reached**']
  }
}

function memoryTable(bytes) {
  const sizes = Object.values(bytes)[0].map(([size]) => `${size.toLocaleString('en')} keys`)
  return table(
    ['', ...sizes],
    Object.entries(bytes).map(([algorithm, figures]) => [algorithm, ...figures.map(([, each]) => plain(each))]),
  )
}
