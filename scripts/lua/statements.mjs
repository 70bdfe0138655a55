// Statements: one a line.
import { condition, expression } from './expressions.mjs'
import { localName } from './names.mjs'
import { either, isAlwaysTrue, UNKNOWN } from './types.mjs'

/** The statements of a block, in a scope of their own. `declare` adds names to it. */
export function block(f, nodes, declare = () => {}) {
  f.nested(() => {
    declare()
    for (const [k, node] of nodes.entries()) {
      if (endsBlock(node) && k < nodes.length - 1) f.fail(nodes[k + 1], 'this is never reached')
      statement(f, node)
    }
  })
}

const endsBlock = ({ type }) => type === 'ReturnStatement' || type === 'BreakStatement'

const bodyOf = (node) => (node.type === 'BlockStatement' ? node.body : [node])

function statement(f, node) {
  const write = STATEMENTS[node.type]
  if (write === undefined) f.fail(node, `${node.type} does not become Lua`)
  write(f, node)
}

const STATEMENTS = {
  EmptyStatement() {},

  BlockStatement(f, { body, names = [] }) {
    f.line('do')
    block(f, body, () => {
      for (const { name, luaType } of names) f.declare(name, luaType)
    })
    f.line('end')
  },

  /** Where a section begins: only what is made by take.mjs has some. */
  Section(f) {
    f.beginSection()
  },

  VariableDeclaration(f, node) {
    for (const each of node.declarations) declare(f, each)
  },

  ReturnStatement(f, node) {
    if (node.several) f.line(`return ${node.several.map((each) => expression(f, each).text).join(', ')}`)
    else if (node.argument === null) f.line('return')
    else give(f, node.argument, (text) => `return ${text}`)
  },

  /** A function within another: only what is made by specialise.mjs has one. */
  FunctionDeclaration(f, { id, params, body }) {
    f.line(`local function ${id.name}(${params.map(({ name }) => localName(f.source, name)).join(', ')})`)
    block(f, body.body, () => {
      for (const { name, luaType } of params) f.declare(name, luaType)
    })
    f.line('end')
    f.declare(id.name, UNKNOWN)
  },

  BreakStatement(f, node) {
    if (node.label !== null) f.fail(node, 'labels do not become Lua')
    f.line('break')
  },

  IfStatement(f, node) {
    f.line(`if ${condition(f, node.test).text} then`)
    block(f, bodyOf(node.consequent))
    let rest = node.alternate
    while (rest !== null && rest.type === 'IfStatement') {
      f.line(`elseif ${condition(f, rest.test).text} then`)
      block(f, bodyOf(rest.consequent))
      rest = rest.alternate
    }
    if (rest !== null) {
      f.line('else')
      block(f, bodyOf(rest))
    }
    f.line('end')
  },

  WhileStatement(f, node) {
    f.line(`while ${condition(f, node.test).text} do`)
    block(f, bodyOf(node.body))
    f.line('end')
  },

  ForStatement(f, node) {
    if (!countedLoop(f, node)) generalLoop(f, node)
  },

  ExpressionStatement(f, { expression: node }) {
    if (node.type === 'AssignmentExpression') assign(f, node)
    else if (node.type === 'UpdateExpression') step(f, node)
    else if (node.type === 'CallExpression') f.line(expression(f, node).text)
    else f.fail(node, 'a statement assigns or calls')
  },
}

function declare(f, { id, init }) {
  if (id.type !== 'Identifier') f.fail(id, 'taking apart does not become Lua: name each value')
  const annotated = id.luaType ?? f.program.types.read(f.source, id.typeAnnotation)
  const known = (type) => (annotated.kind === 'unknown' ? type : annotated)
  if (init === null) {
    f.line(`local ${f.declare(id.name, known(UNKNOWN))}`)
  } else if (needsIf(f, init)) {
    const type = known(either(expression(f, init.consequent).type, expression(f, init.alternate).type))
    const name = f.declare(id.name, type)
    f.line(`local ${name}`)
    give(f, init, (text) => `${name} = ${text}`)
  } else {
    const read = expression(f, init)
    f.line(`local ${f.declare(id.name, known(read.type))} = ${read.text}`)
  }
}

/**
 * Whether this is a choice that `and` and `or` would get wrong, because its middle may be false or
 * nil.
 */
function needsIf(f, node) {
  return node.type === 'ConditionalExpression' && !isAlwaysTrue(expression(f, node.consequent).type)
}

/** A value that becomes a statement: by an if where it is such a choice. */
function give(f, node, toLine) {
  if (!needsIf(f, node)) {
    f.line(toLine(expression(f, node).text))
    return
  }
  f.line(`if ${condition(f, node.test).text} then`)
  f.nested(() => give(f, node.consequent, toLine))
  f.line('else')
  f.nested(() => give(f, node.alternate, toLine))
  f.line('end')
}

function assign(f, { operator, left, right }) {
  if (left.type !== 'Identifier' && left.type !== 'MemberExpression') f.fail(left, 'this cannot be assigned to in Lua')
  const target = expression(f, left)
  if (operator === '=') {
    give(f, right, (text) => `${target.text} = ${text}`)
    return
  }
  if (target.text.includes('(')) f.fail(left, 'this would be computed twice in Lua: name the place first')
  const sum = { type: 'BinaryExpression', operator: operator.slice(0, -1), left, right, start: left.start }
  f.line(`${target.text} = ${expression(f, sum).text}`)
}

/** `k++` and `k--`, as statements. */
function step(f, { operator, argument }) {
  const target = expression(f, argument).text
  f.line(`${target} = ${target} ${operator[0]} 1`)
}

/** A loop of TypeScript, step by step. */
function generalLoop(f, { init, test, update, body }) {
  if (init?.type === 'VariableDeclaration') {
    STATEMENTS.BlockStatement(f, { body: [init, { type: 'ForStatement', init: null, test, update, body }] })
    return
  }
  if (init !== null) statement(f, asStatement(init))
  f.line(`while ${test === null ? 'true' : condition(f, test).text} do`)
  block(f, update === null ? bodyOf(body) : [...bodyOf(body), asStatement(update)])
  f.line('end')
}

const asStatement = (node) => ({ type: 'ExpressionStatement', expression: node, start: node.start })

/**
 * `for (let k = a; k < b; k += 1)` as Lua's own loop, which is faster and computes its end once:
 * only where nothing changes the counter or the end meanwhile. Counters and ends are whole numbers.
 * Tells whether it was one.
 */
function countedLoop(f, { init, test, update, body }) {
  const name = counterOf(init)
  const by = stepOf(update, name)
  if (by === undefined || test?.type !== 'BinaryExpression' || test.left.name !== name) return false
  const { right, operator } = test
  const isUp = operator === '<' || operator === '<='
  const isDown = operator === '>' || operator === '>='
  if ((by === 1 ? !isUp : !isDown) || f.assignedIn(body).has(name) || !f.isStill(right, body)) return false
  const start = expression(f, init.declarations[0].init)
  const beyond = { '<': -1, '>': 1 }[operator] ?? 0
  const end = shifted(f, right, beyond)
  f.line(`for ${localName(f.source, name)} = ${start.text}, ${end}${by === 1 ? '' : ', -1'} do`)
  block(f, bodyOf(body), () => f.declare(name, start.type))
  f.line('end')
  return true
}

/** The one variable that a loop declares. */
function counterOf(init) {
  if (init?.type !== 'VariableDeclaration' || init.declarations.length !== 1) return undefined
  const { id, init: start } = init.declarations[0]
  return start === null ? undefined : id.name
}

/** 1 or -1, if that is how a loop goes on. */
function stepOf(update, name) {
  const target = update?.argument ?? update?.left
  if (name === undefined || target?.name !== name) return undefined
  if (update.type === 'UpdateExpression') return update.operator === '++' ? 1 : -1
  if (update.right.value !== 1) return undefined
  return { '+=': 1, '-=': -1 }[update.operator]
}

/** The end of a loop, one less or one more. */
function shifted(f, node, by) {
  const read = expression(f, node)
  if (by === 0) return read.text
  if (typeof read.constant === 'number') return String(read.constant + by)
  if (node.type === 'BinaryExpression' && node.operator === (by < 0 ? '+' : '-') && expression(f, node.right).constant === 1) {
    return expression(f, node.left).text
  }
  return `${read.text} ${by < 0 ? '-' : '+'} 1`
}
