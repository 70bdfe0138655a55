/**
 * The results, as tables: the totals of each algorithm, and a worked example beside its published
 * figures.
 */
import { h } from '../dom.ts'
import { counted, plain, seconds, time } from '../numbers.ts'
import { type Run, SteppedLimiter } from '../simulation/run.ts'
import { rowsOf } from '../simulation/tapes.ts'
import type { Decision, Tape } from '../sluice.ts'
import type { Texts } from '../text/en.ts'
import { isOver } from './conclusion.ts'

export function totalsTable({ rows }: Run, texts: Texts): HTMLElement {
  const { totals } = texts
  const head = [totals.algorithm, totals.most, totals.admitted, totals.refused, totals.wait]
  const body = rows.map((row) => {
    const { type, capacity, totals: of } = row
    const most = totals.mostIn(counted(of.mostInWindow), counted(capacity), seconds(of.windowUs))
    return labelled(
      head,
      [
        h('th', { scope: 'row' }, texts.types[type]),
        h('td', { class: isOver(row) ? 'number above' : 'number' }, most),
        h('td', { class: 'number admitted' }, counted(of.admitted)),
        h('td', { class: 'number refused' }, counted(of.refused)),
        h('td', { class: 'number' }, waitText(of.longestWaitUs, totals.never)),
      ],
      { 'data-row': type },
    )
  })
  return table(head, h('tbody', {}, ...body), totals.heading, 'cards')
}

/**
 * A row whose cells know their column: on a phone each row is a card, and each cell says what it
 * is.
 */
export function labelled(
  head: readonly string[],
  cells: readonly HTMLElement[],
  attributes: Readonly<Record<string, unknown>>,
): HTMLElement {
  for (const [k, cell] of cells.entries()) cell.dataset.label = head[k] as string
  return h('tr', attributes, ...cells)
}

const waitText = (us: number, never: string): string => (us === 0 ? '–' : Number.isFinite(us) ? time(us) : never)

const FIGURES = ['outcome', 'remaining', 'retryAfterMs', 'resetAfterMs', 'delayMs'] as const

/**
 * Every row of the tape: what the table states, what the library says now, and whether they are the
 * same.
 */
export function tapeTable(tape: Tape, texts: Texts): HTMLElement {
  const { table: words } = texts
  const head = [words.at, words.cost, words.times, words.outcome, words.remaining, words.retry, words.reset, words.delay, words.agrees]
  const body = playedRows(tape).map(({ row, decisions }) => {
    const { atMs, cost, repeat = 1, ...stated } = row
    const last = decisions.at(-1) as Decision
    const agrees = decisions.every((decision) =>
      FIGURES.every((name) => !(name in stated) || Object.is((stated as Record<string, unknown>)[name], decision[name])),
    )
    const figure = (name: (typeof FIGURES)[number]) =>
      h(
        'td',
        { class: name in stated ? 'number stated' : 'number' },
        name === 'outcome' ? words.outcomes[last.outcome] : shown(name, last[name], texts.totals.never),
      )
    return h(
      'tr',
      {},
      h('td', { class: 'number' }, `${plain(atMs)} ms`),
      h('td', { class: 'number' }, plain(cost)),
      h('td', { class: 'number' }, repeat),
      ...FIGURES.map(figure),
      h('td', { class: agrees ? 'agrees' : 'disagrees' }, agrees ? `✓ ${words.yes}` : `✗ ${words.no}`),
    )
  })
  return table(head, h('tbody', {}, ...body), words.heading)
}

function playedRows(tape: Tape): { row: Tape['tape'][number]; decisions: Decision[] }[] {
  const stage = new SteppedLimiter(tape.limit)
  return rowsOf(tape).map(({ count }, k) => {
    const row = tape.tape[k] as Tape['tape'][number]
    return { row, decisions: Array.from({ length: count }, () => stage.consume(Math.round(row.atMs * 1000), row.cost)) }
  })
}

function shown(name: string, value: number, never: string): string {
  if (name === 'remaining') return plain(value)
  return Number.isFinite(value) ? `${plain(value)} ms` : never
}

export function table(head: readonly string[], body: HTMLElement, label: string, kind = ''): HTMLElement {
  return h(
    'div',
    { class: `scroll ${kind}`, tabindex: 0, role: 'region', 'aria-label': label },
    h('table', {}, h('thead', {}, h('tr', {}, ...head.map((text) => h('th', { scope: 'col' }, text)))), body),
  )
}
