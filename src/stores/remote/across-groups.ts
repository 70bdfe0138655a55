/**
 * One decision whose parts lie in several groups (`groupOf` of the driver), as keys on several
 * servers of a cluster do, where no call reaches all of them: ask all, take all, and give back
 * exactly what was taken if one refuses meanwhile. In between a charge is seen that may be
 * withdrawn: it may refuse a call, it never admits one. If this process dies in between, the charge
 * stays, and drains. If the caller was told meanwhile that the store took too long, nothing is
 * taken any more, and what was taken is given back.
 */
import type { Verdict } from '../../algorithms/decide.ts'
import { chargesOf, giveBacks } from '../settlement.ts'
import { type Part, Step } from '../step.ts'
import { allAllowed } from '../store.ts'

/** A caller cannot stand in line at several servers. */
function withoutPlace(op: Step['op'], verdicts: Verdict[]): Verdict[] {
  if (op === 'line') for (const verdict of verdicts) verdict.given = -1
  return verdicts
}

/** Runs a step whose parts are in one group. */
export type RunStep = (step: Step) => Promise<readonly Verdict[]>

/** `places`: for each group the places of its parts in the step. */
export async function acrossGroups(step: Step, places: readonly (readonly number[])[], run: RunStep): Promise<Verdict[]> {
  const ofGroup = (op: Step['op']) => places.map((indexes) => stepOf(step, op, indexes))
  if (step.op !== 'take' && step.op !== 'line') return inOrder(places, await Promise.all(ofGroup(step.op).map(run)))
  const asked = await Promise.all(ofGroup('ask').map(run))
  if (step.isGivenUp || !asked.every(allAllowed)) return withoutPlace(step.op, inOrder(places, asked))
  const takes = ofGroup('take')
  const taken = await Promise.allSettled(takes.map(run))
  const failed = taken.find((result) => result.status === 'rejected')
  const answers = taken.map((result) => (result.status === 'fulfilled' ? result.value : undefined))
  if (failed === undefined && !step.isGivenUp && answers.every((verdicts) => verdicts !== undefined && allAllowed(verdicts))) {
    return inOrder(places, answers as (readonly Verdict[])[])
  }
  // A charge that cannot be given back drains; the answer stays the same.
  await Promise.allSettled(
    answers.map((verdicts, k) => (verdicts && allAllowed(verdicts) ? giveBack(takes[k] as Step, verdicts, run) : undefined)),
  )
  if (failed !== undefined) throw failed.reason
  // Groups that agreed answer as before the take: their charges were given back.
  const refused = answers.map((verdicts, k) => (verdicts && !allAllowed(verdicts) ? verdicts : (asked[k] as readonly Verdict[])))
  return withoutPlace(step.op, inOrder(places, refused))
}

/** With parts of its own: verdicts are written into them. */
function stepOf({ scope, parts, aheadUs, ofUs, nowUs }: Step, op: Step['op'], indexes: readonly number[]): Step {
  const own = indexes.map((k) => (parts[k] as Part).with({}))
  return new Step(op, scope, own, aheadUs, ofUs, nowUs)
}

/**
 * One that was entered later than the others, by a clock that had stepped back, is found by its own
 * time only.
 */
function giveBack(step: Step, verdicts: readonly Verdict[], run: RunStep): Promise<unknown> {
  const given = giveBacks(step.parts, chargesOf(step.parts, verdicts))
  return Promise.all(given.map(({ op, aheadUs, ofUs, parts }) => run(new Step(op, step.scope, parts, aheadUs, ofUs, step.nowUs))))
}

function inOrder(places: readonly (readonly number[])[], answers: readonly (readonly Verdict[])[]): Verdict[] {
  const verdicts: Verdict[] = []
  places.forEach((indexes, group) => {
    indexes.forEach((place, k) => {
      const verdict = answers[group]?.[k]
      if (verdict !== undefined) verdicts[place] = verdict
    })
  })
  return verdicts
}
