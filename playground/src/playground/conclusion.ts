/**
 * The conclusion of a run, in one sentence: which algorithms let more through than the limit, and
 * which did not.
 */
import { counted, time } from '../numbers.ts'
import type { Row, Run } from '../simulation/run.ts'
import type { Texts } from '../text/en.ts'

export const isOver = ({ capacity, totals }: Row): boolean => totals.mostInWindow > capacity

export function conclusionOf({ rows, atUs }: Run, texts: Texts): string {
  return [limitOf(rows, texts), found(rows, atUs.length, texts)]
    .filter((sentence) => sentence !== '')
    .join(texts.language === 'zh' ? '' : ' ')
}

/** The limit, if all have the same. */
function limitOf([first, ...others]: readonly Row[], { conclusion }: Texts): string {
  if (first === undefined) return ''
  const { windowUs } = first.totals
  if (others.some(({ capacity, totals }) => capacity !== first.capacity || totals.windowUs !== windowUs)) return ''
  return conclusion.limit(counted(first.capacity), perText(windowUs, conclusion))
}

const UNITS_US = { second: 1e6, minute: 60e6, hour: 3_600e6, day: 86_400e6 } as const

function perText(windowUs: number, { per }: Texts['conclusion']): string {
  const unit = (Object.keys(UNITS_US) as (keyof typeof UNITS_US)[]).find((name) => UNITS_US[name] === windowUs)
  return unit === undefined ? per.other(time(windowUs)) : per[unit]
}

function found(rows: readonly Row[], calls: number, texts: Texts): string {
  const { conclusion } = texts
  const over = rows.filter(isOver)
  if (over.length > 0) return worst(over, texts) + kept(rows, texts)
  const refused = rows.map(({ totals }) => totals.refused)
  const least = Math.min(...refused)
  if (Math.max(...refused) === 0) return conclusion.all(counted(calls))
  if (least === Math.max(...refused)) return `${conclusion.none} ${conclusion.alike(counted(least))}`
  const mildest = rows[refused.indexOf(least)] as Row
  return `${conclusion.none} ${conclusion.refused(counted(least), texts.types[mildest.type])}`
}

function worst(over: readonly Row[], { conclusion, types }: Texts): string {
  const { type, totals } = over.reduce((most, row) => (excess(row) > excess(most) ? row : most))
  const most = counted(totals.mostInWindow)
  if (totals.mostWithinUs === 0) return conclusion.overAtOnce(types[type], most)
  return conclusion.over(types[type], most, time(about(totals.mostWithinUs)))
}

/** Parts of a millisecond say nothing in a time of many. */
const about = (us: number): number => (us < 10_000 ? us : Math.round(us / 1000) * 1000)

const excess = ({ capacity, totals }: Row): number => totals.mostInWindow / capacity

/** The log is the one that keeps to every window by its nature; else the first that did. */
function kept(rows: readonly Row[], { conclusion, types }: Texts): string {
  const those = rows.filter((row) => !isOver(row))
  const one = those.find(({ type }) => type === 'slidingLog') ?? those[0]
  return one === undefined ? conclusion.end : conclusion.kept(types[one.type], counted(one.totals.mostInWindow))
}
