// Takes: `decide` for cells whose states are written under the rules of the caller.
//
// By one limit it is one function, with all that it calls put in place. For takes by several limits
// there are two functions for each algorithm, which are what `decide` does with a cell in each of
// its two loops, and `takeAll`, which is `decide` itself and calls those of each cell.
import { algorithmNode, assigns, Escape, fieldsOf, literal, nothing, Specialiser, variable } from './specialise.mjs'
import { BOOLEAN, NUMBER, STRING, UNKNOWN } from './types.mjs'

/** The two loops of `decide`, for one cell. */
const PHASES = ['agree', 'finish']

/** Fields of a rule that a take has no use for. */
const NOT_NEEDED = new Set(['algorithm', 'figures', 'numbers'])

/** So many words of a state may be variables. */
const FEW_WORDS = 4

/** Where a part of the text begins that is put in place by itself. */
const SECTION = { type: 'Section', start: 0, end: 0 }

const WORDS = { kind: 'array', of: NUMBER }
const OBJECT = { kind: 'object', name: 'cell' }

/**
 * What is decided by one limit, on a state under the caller's rule. A function of the figures of
 * the rule, as a syntax tree, in sections: the rule, what each of the verbs does with a state, and
 * the values: how many words a state may have and how many a new one has, the window, whether the
 * words are variables; and `neededWords`, if states grow.
 */
export function plainFunction(program, decide, algorithm, verbs) {
  return madeOf('newPlain', program, algorithm, (rule, { words, freshWords, windowUs }) => {
    const isInVariables = words.type === 'Literal' && words.value <= FEW_WORDS && rule.fields !== undefined
    const blocks = verbs.flatMap((verb) => [SECTION, verbBy(verb, program, decide, algorithm, rule, isInVariables)])
    return { functions: [], statements: [...blocks, SECTION], values: [words, freshWords, windowUs, literal(isInVariables)] }
  })
}

/**
 * The same for several limits: it returns the two functions of a cell, how many words a state may
 * have and how many a new one has, the window; and `neededWords`.
 */
export function phasesFunction(program, decide, algorithm) {
  const { node } = program.binding(decide, 'decide', { start: 0 })
  return madeOf('newPhases', program, algorithm, (rule, { words, freshWords, windowUs }) => {
    const functions = phasesOf(node).map((phase, k) => phaseFunction(program, decide, rule, node, PHASES[k], phase))
    return { functions, values: [words, freshWords, windowUs] }
  })
}

/**
 * `bodyBy(rule, { words, freshWords, windowUs })`: the functions by a rule, and what else is
 * returned with them.
 */
function madeOf(name, program, algorithm, bodyBy) {
  const figures = variable('figures', WORDS)
  const made = specialiserFor(program, [figures])
  const { value } = algorithm.node.init.properties.find((each) => each.key?.name === 'ruleOf')
  const { lines, result } = made.body(algorithm.source, value, [figures])
  const object = result.arguments?.[0] ?? result
  const rule = { ...object, properties: object.properties.filter(({ key }) => !NOT_NEEDED.has(key.name)) }
  const needed = neededBy(program, algorithm)
  const by = (...given) => {
    const { functions, statements = [], values } = bodyBy(...given)
    const named = ({ id }) => variable(id.name, UNKNOWN)
    const several = [...functions.map(named), ...values, ...needed.map(named)]
    return [...functions, ...needed, ...statements, { type: 'ReturnStatement', several, start: 0 }]
  }
  const body = inVariables(algorithm, made, rule, by) ?? inTable(algorithm, rule, by)
  return functionOf(name, [figures], [...lines, ...body])
}

/**
 * `takeAll(cells, nowUs)`: `decide` for cells that bring the functions of their phases with them.
 */
export function takeAllFunction(program, decide) {
  const { node } = program.binding(decide, 'decide', { start: 0 })
  const [cells, nowUs] = [variable('cells', { kind: 'array', of: OBJECT }), variable('nowUs', NUMBER)]
  const phases = phasesOf(node)
  const body = node.body.body.map((each) => {
    const k = phases.findIndex(({ loop }) => loop === each)
    return k < 0 ? each : { ...each, body: callOf(PHASES[k], phases[k], each) }
  })
  const specialiser = specialiserFor(program, [cells, nowUs])
  const values = valuesFor(node, { ...PLAIN, cells, nowUs })
  const { lines, result } = specialiser.body(decide, { ...node, body: { ...node.body, body } }, values)
  return functionOf('takeAll', [cells, nowUs], [...lines, { type: 'ReturnStatement', several: [result], start: 0 }])
}

/** What is known of a take. */
const PLAIN = { op: literal('take'), aheadUs: literal(-1), ofUs: literal(-1), isTold: literal(true) }

function valuesFor({ params }, given) {
  return params.map(({ name }) => given[name])
}

/**
 * The loops over the cells, each with what it uses of the variables around it, and which of those
 * it assigns.
 */
function phasesOf(node) {
  const declared = []
  const phases = []
  for (const each of node.body.body) {
    if (each.type === 'VariableDeclaration') declared.push(...each.declarations.map(({ id }) => id.name))
    if (each.type !== 'ForStatement') continue
    const used = declared.filter((name) => mentions(each.body, name))
    phases.push({ loop: each, used, assigned: used.filter((name) => assigns(each.body, name)) })
  }
  if (phases.length !== PHASES.length || phases.some(({ assigned }) => assigned.length > 1))
    throw new Error(`decide has to have ${PHASES.length} loops over its cells, each of which assigns one variable at most`)
  return phases
}

function mentions(node, name) {
  if (node.type === 'Identifier' && node.name === name) return true
  return Object.values(node)
    .flat()
    .some((each) => typeof each?.type === 'string' && mentions(each, name))
}

/** In place of the body of a loop: the call of what the cell brings with it for that. */
function callOf(name, { used, assigned }, { init }) {
  const named = (each) => ({ type: 'Identifier', name: each, start: 0, end: 0 })
  const cell = {
    type: 'MemberExpression',
    computed: true,
    object: named('cells'),
    property: named(init.declarations[0].id.name),
    start: 0,
    end: 0,
  }
  const callee = { type: 'MemberExpression', object: cell, property: { type: 'Identifier', name }, start: 0, end: 0 }
  const call = { type: 'CallExpression', callee, arguments: [cell, named('nowUs'), ...used.map(named)], luaType: BOOLEAN, start: 0, end: 0 }
  const [target] = assigned
  const expression = target ? { type: 'AssignmentExpression', operator: '=', left: named(target), right: call, start: 0, end: 0 } : call
  return { type: 'BlockStatement', body: [{ type: 'ExpressionStatement', expression, start: 0, end: 0 }], start: 0, end: 0 }
}

/**
 * The functions with a variable for each field of the rule. Undefined if functions are called with
 * the rule as a whole.
 */
function inVariables(algorithm, made, { properties }, by) {
  const declared = []
  const fields = properties.map(({ key: { name }, value }) => {
    if (value.type === 'Literal' || value.isFixed) return [name, value]
    const local = variable(made.fresh(name), made.typeOf(value))
    declared.push(declaration([{ id: local, init: value }]))
    return [name, local]
  })
  const rule = fieldsOf({ algorithm: algorithmNode(algorithm), numbers: OWN_NUMBERS, ...Object.fromEntries(fields) })
  try {
    return [...declared, ...by(rule, rule.fields)]
  } catch (error) {
    if (error instanceof Escape) return undefined
    throw error
  }
}

function inTable(algorithm, object, by) {
  const literals = object.properties.filter(({ value }) => value.type === 'Literal').map(({ key, value }) => [key.name, value])
  const known = new Map([['algorithm', algorithmNode(algorithm)], ['numbers', OWN_NUMBERS], ...literals])
  const rule = { ...variable('rule', algorithm.type.names.R), known }
  const field = (name) => known.get(name) ?? member(rule, name, NUMBER)
  const fields = { words: field('words'), freshWords: field('freshWords'), windowUs: field('windowUs') }
  return [declaration([{ id: rule, init: object }]), ...by(rule, fields)]
}

/** `neededWords(s)`, of an algorithm whose states grow. */
function neededBy(program, algorithm) {
  const found = algorithm.node.init.properties.find((each) => each.key?.name === 'neededWords')
  if (found === undefined) return []
  const s = variable('s', WORDS)
  const { lines, result } = specialiserFor(program, [s]).body(algorithm.source, found.value, [s, literal(1)])
  return [functionOf('neededWords', [s], [...lines, { type: 'ReturnStatement', several: [result], start: 0 }])]
}

/**
 * What `decide` does for one cell, as a block. It uses the words of the state (`s`, or `s1` to
 * `s4`), `isHeld`, `cost`, `nowUs`, and to settle `ofUs` and, of what can be booked ahead,
 * `drainedUs`: when the charge would have drained; to renew, `tokens`. It assigns `changed` and the
 * fields of the verdict.
 */
function verbBy(verb, program, decide, algorithm, rule, isInVariables) {
  const words = isInVariables ? ['s1', 's2', 's3', 's4'].map((name) => variable(name, NUMBER, false)) : []
  const s = isInVariables ? { type: 'Static', elements: [undefined, ...words] } : variable('s', WORDS)
  const [isHeld, ...numbers] = [
    variable('isHeld', BOOLEAN),
    ...['cost', 'nowUs', 'ofUs', 'drainedUs'].map((name) => variable(name, NUMBER)),
  ]
  const [cost, nowUs, ofUs, drainedUs] = numbers
  const changed = variable('changed', BOOLEAN, false)
  const told = [variable('outcome', STRING, false), ...TOLD.map((name) => variable(name, NUMBER, false))]
  const verdict = fieldsOf({ ...Object.fromEntries(told.map((each) => [each.name, each])), atUs: undefined, ticket: undefined })
  const tokens = variable('tokens', WORDS)
  const left = isBookable(algorithm)
    ? fieldsOf({ numbers: OWN_NUMBERS, words: { type: 'Static', elements: [drainedUs, ofUs, ofUs, literal(0)] } })
    : nothing
  const ticket = verb === 'renew' ? fieldsOf({ numbers: OWN_NUMBERS, words: tokens }) : left
  const cell = fieldsOf({ rule, own: rule, cost, ticket, s, i: literal(1), isHeld, changed, verdict })
  const { node } = program.binding(decide, 'decide', { start: 0 })
  const outer = Object.values(rule.fields ?? { rule }).filter(({ name }) => name !== undefined)
  const values = valuesFor(node, { ...PLAIN, op: literal(verb), ofUs, cells: { type: 'Static', elements: [cell] }, nowUs })
  const used = [...words, ...(isInVariables ? [] : [s]), isHeld, ...numbers, tokens, changed, ...told]
  const { lines } = specialiserFor(program, [...used, ...outer]).body(decide, node, values)
  // Names of variables around it are known to the writer of the block.
  return { type: 'BlockStatement', body: lines, names: used, start: 0, end: 0 }
}

/** What a verdict says besides the outcome. */
const TOLD = ['remaining', 'retryUs', 'resetUs', 'delayUs', 'enteredUs', 'given']

/** The name of a rule's numbers, where a ticket has the same. */
const OWN_NUMBERS = literal('own')

function isBookable(algorithm) {
  return algorithm.node.init.properties.find((each) => each.key?.name === 'bookable')?.value.value === true
}

/**
 * What one loop of `decide` does with a cell, as a function of the cell, the time, and the
 * variables around the loop. Returns the one that it assigns.
 */
function phaseFunction(program, decide, rule, node, name, { loop, used, assigned }) {
  const [cell, nowUs, s, cost] = [variable('cell', OBJECT), variable('nowUs', NUMBER), variable('s', WORDS), variable('cost', NUMBER)]
  const verdict = variable('verdict', OBJECT)
  const told = ['remaining', 'retryUs', 'resetUs', 'delayUs', 'enteredUs'].map((each) => [each, member(verdict, each, NUMBER)])
  const carried = used.map((each) => variable(each, BOOLEAN, !assigned.includes(each)))
  const given = fieldsOf({
    rule,
    own: rule,
    cost,
    s,
    i: literal(1),
    isHeld: member(cell, 'isHeld', BOOLEAN),
    changed: member(cell, 'changed', BOOLEAN),
    verdict: fieldsOf({ outcome: member(verdict, 'outcome', STRING), ...Object.fromEntries(told), atUs: undefined, ticket: undefined }),
  })
  const outer = Object.values(rule.fields ?? { rule }).filter((each) => each.name !== undefined)
  const specialiser = specialiserFor(program, [cell, nowUs, s, cost, verdict, ...carried, ...outer])
  const parameters = [...node.params, { name: loop.init.declarations[0].id.name }, ...used.map((each) => ({ name: each }))]
  const returned = assigned.map((each) => ({
    type: 'ReturnStatement',
    argument: { type: 'Identifier', name: each, start: 0, end: 0 },
    start: 0,
    end: 0,
  }))
  const body = { type: 'BlockStatement', body: [...loop.body.body, ...returned], start: 0, end: 0 }
  const values = [...valuesFor(node, { ...PLAIN, cells: { type: 'Static', elements: [given] }, nowUs }), literal(0), ...carried]
  const { lines, result } = specialiser.body(decide, { params: parameters, body }, values)
  const locals = [
    [s, member(cell, 's', WORDS)],
    [cost, member(cell, 'cost', NUMBER)],
    [verdict, member(cell, 'verdict', OBJECT)],
  ].map(([id, init]) => ({ id, init }))
  const end = assigned.length > 0 ? [{ type: 'ReturnStatement', several: [result], start: 0 }] : []
  return functionOf(name, [cell, nowUs, ...carried], [declaration(locals), ...lines, ...end])
}

function member(object, name, luaType) {
  return { type: 'MemberExpression', object, property: { type: 'Identifier', name }, computed: false, luaType, start: 0, end: 0 }
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
