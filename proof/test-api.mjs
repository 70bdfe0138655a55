// The part of vitest's API that the tests use, run in this process: starting vitest anew for each
// of thousands of mutants would take hours. `expect` and `vi` are vitest's own.
import { inspect } from 'node:util'
import { expect, vi } from 'vitest'

/** Collects the tests of what is loaded with `api`; `run` runs them, up to the first that fails. */
export function collector(redisPort) {
  const root = suiteNamed('', undefined)
  let present = root
  const describe = (name, define) => {
    const suite = suiteNamed(name, present)
    present.children.push(suite)
    present = suite
    define()
    present = suite.parent
  }
  const test = (name, ...rest) => present.children.push({ name, run: rest.find(isFunction), parent: present })
  const hook = (kind) => (run) => present[kind].push(run)
  const api = {
    expect,
    vi,
    inject: () => redisPort,
    describe: withEach(describe),
    test: withEach(test),
    beforeAll: hook('beforeAll'),
    beforeEach: hook('beforeEach'),
    afterAll: hook('afterAll'),
    afterEach: hook('afterEach'),
  }
  const run = (only) => (isWanted(root, only) ? runSuite(root, only) : { test: '', message: `no test has a name like ${only}` })
  return { api, run }
}

function suiteNamed(name, parent) {
  return { name, parent, children: [], beforeAll: [], beforeEach: [], afterAll: [], afterEach: [] }
}

const isFunction = (value) => typeof value === 'function'

function withEach(define) {
  // Options, such as a timeout, may stand before the function or behind it.
  const each =
    (rows) =>
    (name, ...rest) => {
      for (const row of rows) {
        const values = Array.isArray(row) ? row : [row]
        define(titleOf(name, values), () => rest.find(isFunction)(...values))
      }
    }
  return Object.assign((name, ...rest) => define(name, ...rest), { each })
}

function titleOf(name, values) {
  let next = 0
  return name.replace(/%[a-z]/g, () => shown(values[next++])).replace(/\$(\w+)/g, (_, field) => shown(values[0]?.[field]))
}

const shown = (value) => (typeof value === 'string' ? value : inspect(value))

function fullName({ name, parent }) {
  return parent === undefined ? name : `${fullName(parent)} ${name}`.trim()
}

function isWanted(node, only) {
  return node.children === undefined ? only.test(fullName(node)) : node.children.some((child) => isWanted(child, only))
}

/** The name and the message of the first test that fails, or undefined. */
async function runSuite(suite, only) {
  try {
    for (const before of suite.beforeAll) await before()
    for (const child of suite.children) {
      const failure = isWanted(child, only) ? await (child.children === undefined ? runTest(child) : runSuite(child, only)) : undefined
      if (failure !== undefined) return failure
    }
    return undefined
  } catch (error) {
    return { test: fullName(suite), message: `${error}` }
  } finally {
    for (const after of suite.afterAll) await after()
  }
}

const SKIPPED = Symbol('skipped')

function skip(isSkipped) {
  if (isSkipped) throw SKIPPED
}

async function runTest(test) {
  const suites = []
  for (let suite = test.parent; suite !== undefined; suite = suite.parent) suites.unshift(suite)
  try {
    for (const before of suites.flatMap(({ beforeEach }) => beforeEach)) await before()
    await test.run({ skip })
    return undefined
  } catch (error) {
    if (error === SKIPPED) return undefined
    return { test: fullName(test), message: `${error?.message ?? error}` }
  } finally {
    for (const after of suites.reverse().flatMap(({ afterEach }) => afterEach)) await after()
  }
}
