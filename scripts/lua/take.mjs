// The plain take by one limit: `decide` for one cell, whose state is written under the rule of the caller.
import { algorithmNode, Escape, fieldsOf, literal, Specialiser, variable } from './specialise.mjs'
import { BOOLEAN, NUMBER, STRING, UNKNOWN } from './types.mjs'

/** Fields of a rule that a take has no use for. */
const NOT_NEEDED = new Set(['algorithm', 'figures', 'numbers'])

const WORDS = { kind: 'array', of: NUMBER }

/** A function of the figures of a rule that returns the take by that rule, and how many words a state has, as a syntax tree. */
export function takeFunction(program, decide, algorithm) {
  const figures = variable('figures', WORDS)
  const made = specialiserFor(program, [figures])
  const { value } = algorithm.node.init.properties.find((each) => each.key?.name === 'ruleOf')
  const { lines, result } = made.body(algorithm.source, value, [figures])
  const object = result.arguments?.[0] ?? result
  const properties = object.properties.filter(({ key }) => !NOT_NEEDED.has(key.name))
  const { declared, rule } = ruleOf(program, decide, algorithm, made, { ...object, properties })
  const words = rule.fields?.words ?? { type: 'MemberExpression', object: rule, property: { name: 'words' }, start: 0 }
  const take = takeBy(program, decide, rule)
  return functionOf(
    'newTake',
    [figures],
    [...lines, ...declared, take, { type: 'ReturnStatement', several: [variable('take', UNKNOWN), words], start: 0 }],
  )
}

/** The rule: a variable for each of its fields, or a table if functions are called with it. */
function ruleOf(program, decide, algorithm, made, object) {
  const known = new Map([['algorithm', algorithmNode(algorithm)]])
  const declared = []
  const fields = object.properties.map(({ key: { name }, value }) => {
    if (value.type === 'Literal' || value.isFixed) return [name, value]
    const local = variable(made.fresh(name), made.typeOf(value))
    declared.push(declaration([{ id: local, init: value }]))
    return [name, local]
  })
  const rule = fieldsOf({ ...Object.fromEntries(known), ...Object.fromEntries(fields) })
  try {
    takeBy(program, decide, rule)
    return { declared, rule }
  } catch (error) {
    if (!(error instanceof Escape)) throw error
    for (const [name, value] of fields) if (value.type === 'Literal') known.set(name, value)
    const table = { ...variable('rule', algorithm.type.names.R), known }
    return { declared: [declaration([{ id: table, init: object }])], rule: table }
  }
}

/** `take(s, isHeld, cost, nowUs)`. */
function takeBy(program, decide, rule) {
  const parameters = [variable('s', WORDS), variable('isHeld', BOOLEAN), variable('cost', NUMBER), variable('nowUs', NUMBER)]
  const [s, isHeld, cost, nowUs] = parameters
  const changed = variable('changed', BOOLEAN, false)
  const numbers = ['remaining', 'retryUs', 'resetUs', 'delayUs', 'enteredUs'].map((name) => variable(name, NUMBER, false))
  const told = [variable('outcome', STRING, false), ...numbers]
  const verdict = fieldsOf({ ...Object.fromEntries(told.map((each) => [each.name, each])), atUs: undefined, ticket: undefined })
  const cell = fieldsOf({ rule, own: rule, cost, s, i: literal(1), isHeld, changed, verdict })
  const cells = { type: 'Static', elements: [cell] }
  const given = { op: literal('take'), cells, nowUs, aheadUs: literal(-1), ofUs: literal(-1), isTold: literal(true) }
  const { node } = program.binding(decide, 'decide', { start: 0 })
  const answers = [changed, ...told]
  const outer = Object.values(rule.fields ?? { rule }).filter(({ name }) => name !== undefined)
  const values = node.params.map(({ name }) => given[name])
  const { lines } = specialiserFor(program, [...parameters, ...answers, ...outer]).body(decide, node, values)
  const declared = declaration(answers.map((id) => ({ id, init: null })))
  return functionOf('take', parameters, [declared, ...lines, { type: 'ReturnStatement', several: answers, start: 0 }])
}

function specialiserFor(program, variables) {
  const specialiser = new Specialiser(program)
  for (const { name } of variables) specialiser.reserve(name)
  return specialiser
}

function declaration(declarations) {
  return { type: 'VariableDeclaration', kind: 'let', declarations, start: 0, end: 0 }
}

function functionOf(name, params, body) {
  return { type: 'FunctionDeclaration', id: { name }, params, body: { type: 'BlockStatement', body, start: 0 }, start: 0, end: 0 }
}
