// Calls that are computed in place. A call costs more than a few operations, and a function that is
// not called any more need not be made: Redis makes every function of a script anew at each call of
// the script.
import { expression } from './expressions.mjs'
import { ATOM, OR, PRODUCT, SUM, UNARY, within } from './levels.mjs'
import { NUMBER } from './types.mjs'

/** Arguments of more characters are not computed several times. */
const SHORT = 24

/**
 * A call of a function that only returns what it computes from its arguments. Undefined if this is
 * no such call.
 */
export function callInPlace(f, node) {
  const binding = f.bindingOf(node.callee)
  const returned = binding?.kind === 'function' ? onlyReturned(binding.node.body.body) : undefined
  if (returned === undefined || !node.arguments.every(isShort)) return undefined
  const { params } = binding.node
  const inner = f.inside(
    binding.source,
    new Map(params.map(({ name }, k) => [name, argument(f, node.arguments[k], binding.type.parameters[k])])),
  )
  const read = expression(inner, returned)
  return f.adopt(inner) ? { ...read, type: binding.type.returns } : undefined
}

function argument(f, node, type) {
  return { name: within(expression(f, node), ATOM), type }
}

function onlyReturned([first, ...others]) {
  return others.length === 0 && first?.type === 'ReturnStatement' && first.argument && isPure(first.argument) ? first.argument : undefined
}

/**
 * `Math.max` and the like. The results are the same for all finite numbers, but for the sign of a
 * zero. Undefined where it has to be a call.
 */
export function mathInPlace(node, [a, b]) {
  if (!node.arguments.every(isPure) || node.arguments.length > 2) return undefined
  const { name } = node.callee.property
  if (name === 'max' || name === 'min') {
    const [left, right] = [within(a, SUM), within(b, SUM)]
    return { text: `${left} ${name === 'max' ? '>' : '<'} ${right} and ${left} or ${right}`, level: OR, type: NUMBER }
  }
  const part = name === 'floor' ? `- ${within(a, PRODUCT)} % 1` : `+ -${within(a, UNARY)} % 1`
  return { text: `${within(a, SUM)} ${part}`, level: SUM, type: NUMBER }
}

const isShort = (node) => isPure(node) && node.end - node.start <= SHORT

/** Whether an expression only reads and computes. */
function isPure(node) {
  if (node.type === 'CallExpression') return node.callee.object?.name === 'Math' && node.arguments.every(isPure)
  return Object.values(node)
    .flat()
    .every((child) => typeof child?.type !== 'string' || isPure(child))
}
