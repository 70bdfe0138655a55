/**
 * The loop of a round, made anew from text for each contestant. V8 compiles a function for what it
 * has seen called in it: one loop shared by all would be compiled for none of them, while a program
 * that uses one limiter has it compiled for that one.
 *
 * Returns `round(from, calls)`, which makes that many calls and says how many were allowed, at once
 * or as a promise. With `callsPerTurn` it lets the event loop turn after so many calls.
 */
export function loopOf({ name, ask, isAllowed, isAwaited }, { keys, order, mask }, key, callsPerTurn = 0) {
  const call = `const at = from + i
      const key = ${key}
      ${isAwaited ? AWAITED_CALL : CALL}`
  const body = callsPerTurn > 0 ? inTurns(call) : `for (let i = 0; i < calls; i++) { ${call} }`
  const source = `// ${name}: the name makes the text unlike that of the others, which V8 would share.
  const hotKey = keys[0]
  return ${isAwaited || callsPerTurn > 0 ? 'async ' : ''}function round(from, calls) {
    let allowed = 0
    ${body}
    return allowed
  }`
  const make = new Function('ask', 'isAllowed', 'keys', 'order', 'mask', 'callsPerTurn', 'nextTurn', source)
  return make(ask, isAllowed, keys, order, mask, callsPerTurn, nextTurn)
}

const CALL = 'if (isAllowed(ask(key))) allowed++'

/** Some peers refuse by throwing a value that is no Error. */
const AWAITED_CALL = 'try { if (isAllowed(await ask(key))) allowed++ } catch (no) { if (no instanceof Error) throw no }'

function inTurns(call) {
  return `for (let i = 0; i < calls;) {
      for (const end = Math.min(i + callsPerTurn, calls); i < end; i++) { ${call} }
      await nextTurn()
    }`
}

export function nextTurn() {
  return new Promise((resolve) => setImmediate(resolve))
}
