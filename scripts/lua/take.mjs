// The plain take by one limit: `decide` for one cell, whose state is written under the rule of the caller, with nothing else known of it.
import { algorithmNode, fieldsOf, literal, Specialiser, variable } from './specialise.mjs'
import { BOOLEAN, NUMBER, STRING } from './types.mjs'

/** Fields of a rule that a take has no use for. */
const NOT_NEEDED = new Set(['algorithm', 'figures', 'numbers'])

const WORDS = { kind: 'array', of: NUMBER }

/** The functions `take` and `ruleOf` of an algorithm, as syntax trees. */
export function takeFunctions(program, decide, algorithm) {
  const ruleType = algorithm.type.names.R
  const rule = { ...variable('rule', ruleType), known: new Map([['algorithm', algorithmNode(algorithm)]]) }
  const [s, isHeld, cost, nowUs] = [variable('s', WORDS), variable('isHeld', BOOLEAN), variable('cost', NUMBER), variable('nowUs', NUMBER)]
  const changed = variable('changed', BOOLEAN, false)
  const numbers = ['remaining', 'retryUs', 'resetUs', 'delayUs', 'enteredUs'].map((name) => variable(name, NUMBER, false))
  const told = [variable('outcome', STRING, false), ...numbers]
  const verdict = fieldsOf({ ...Object.fromEntries(told.map((each) => [each.name, each])), atUs: undefined, ticket: undefined })
  const cell = fieldsOf({ rule, own: rule, cost, s, i: literal(1), isHeld, changed, verdict })
  const answers = [changed, ...told]

  const taking = specialiserFor(program, [rule, s, isHeld, cost, nowUs, ...answers])
  const { node } = program.binding(decide, 'decide', { start: 0 })
  const given = {
    op: literal('take'),
    cells: { type: 'Static', elements: [cell] },
    nowUs,
    aheadUs: literal(-1),
    ofUs: literal(-1),
    isTold: literal(true),
  }
  const { lines } = taking.body(
    decide,
    node,
    node.params.map(({ name }) => given[name]),
  )
  const declared = { type: 'VariableDeclaration', kind: 'let', declarations: answers.map((id) => ({ id, init: null })), start: 0 }
  const take = functionOf(
    'take',
    [rule, s, isHeld, cost, nowUs],
    [declared, ...lines, { type: 'ReturnStatement', several: answers, start: 0 }],
  )
  return [take, ruleFunction(program, algorithm)]
}

function ruleFunction(program, { source, node, type }) {
  const figures = variable('figures', WORDS)
  const { value } = node.init.properties.find((each) => each.key?.name === 'ruleOf')
  const { lines, result } = specialiserFor(program, [figures]).body(source, value, [figures])
  const object = result.arguments?.[0] ?? result
  const needed = { ...object, properties: object.properties.filter(({ key }) => !NOT_NEEDED.has(key.name)) }
  return functionOf('ruleOf', [figures], [...lines, { type: 'ReturnStatement', argument: needed, start: 0 }])
}

function specialiserFor(program, variables) {
  const specialiser = new Specialiser(program)
  for (const { name } of variables) specialiser.reserve(name)
  return specialiser
}

function functionOf(name, params, body) {
  return { type: 'FunctionDeclaration', id: { name }, params, body: { type: 'BlockStatement', body, start: 0 }, start: 0, end: 0 }
}
