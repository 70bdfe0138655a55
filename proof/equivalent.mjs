// The survivors, each with a proof that no input of the domain can tell it from the code.
// `npm run proof` fails if a survivor has none here, and if one that is here was killed or is no
// longer a mutant.
import { PROOFS } from './proofs.mjs'

/** Each claim covers one mutant, or one kind of change everywhere in a file. */
export const CLAIMS = PROOFS.flatMap(({ file, scope, line, becomes, everywhere, proof }) => {
  if (everywhere === undefined) return becomes.map((after) => claimOfOne(file, `${file} ${scope}: ${line} => ${after}`, proof))
  const [from, to] = everywhere
  const covers = (mutant) => mutant.file === file && replacesOnce(mutant, from, to)
  return [{ file, name: `${file}, everywhere: ${from} => ${to}`, covers, proof }]
})

function claimOfOne(file, id, proof) {
  return { file, name: id, covers: (mutant) => mutant.id === id, proof }
}

function replacesOnce({ before, after }, from, to) {
  for (let at = before.indexOf(from); at >= 0; at = before.indexOf(from, at + 1)) {
    if (before.slice(0, at) + to + before.slice(at + from.length) === after) return true
  }
  return false
}

export function proofOf(mutant) {
  return CLAIMS.find(({ covers }) => covers(mutant))?.proof
}

/**
 * A proof says that a mutant answers the same. One that takes much longer may be ended on a busy
 * machine before it has answered.
 */
const NOT_AGAINST_A_PROOF = ['survived', 'timed out', 'not judged']

/** The claims about these files that cover nothing, or something that was killed. */
export function falseClaims(results, files) {
  return CLAIMS.filter(({ file, covers }) => {
    const covered = results.filter(covers)
    return files.has(file) && (covered.length === 0 || covered.some(({ status }) => !NOT_AGAINST_A_PROOF.includes(status)))
  })
}
