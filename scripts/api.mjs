// `npm run api`: writes docs/reference/api.txt, the public surface of the package as its
// declarations in dist/ say it. A test compares.
//
// Each path of `exports` with what it declares, without comments. An export that an earlier path
// has, too, is only named. At the end stand the types that no path exports and that others name: a
// change to one of them is a change for users too. Files are not named, so that they can be moved.
import { readFileSync, writeFileSync } from 'node:fs'
import { posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseSync } from 'rolldown/utils'
import { root } from './run.mjs'

export const REPORT = 'docs/reference/api.txt'

export function report() {
  const { exports } = JSON.parse(readFileSync(`${root}package.json`, 'utf8'))
  const entries = Object.entries(exports).filter(([, target]) => target.import)
  const modules = new Map()
  const paths = entries.map(([path, target]) => {
    const file = target.import.replace('./dist/', '').replace(/\.js$/, '.d.ts')
    return { name: path.replace('.', 'sluice'), file, exported: exportsOf(modules, file) }
  })
  const shown = new Map()
  const sections = paths.map((path) => sectionOf(modules, shown, path))
  const inside = reachable(modules, paths).filter((origin) => !shown.has(idOf(origin)) && !shown.has(idOf({ ...origin, typeOnly: true })))
  const texts = [...new Set(inside.flatMap((origin) => textsOf(modules, origin)))].sort()
  return `${[HEAD, ...sections, ['## not exported, but named by the above', ...texts].join('\n\n')].join('\n\n\n')}\n`
}

const HEAD = `The public interface of the package, by \`npm run api\` from the built declarations. Do not edit: change the code, run
\`npm run build && npm run api\`, and commit this file with it.`

/**
 * A class that is exported as a type only cannot be made by users, so it is not the same as the
 * class.
 */
const idOf = ({ file, name, typeOnly }) => `${file} ${name}${typeOnly ? ' as a type' : ''}`

/**
 * A module of declarations: what it declares, where its other names come from, and what it exports.
 */
function moduleAt(modules, file) {
  const known = modules.get(file)
  if (known !== undefined) return known
  const text = readFileSync(`${root}dist/${file}`, 'utf8')
  const { program, comments, errors } = parseSync(file, text, { lang: 'dts' })
  if (errors.length > 0) throw new Error(`dist/${file}: ${errors[0].message}`)
  const module = { file, text, comments, declared: new Map(), imported: new Map(), exported: new Map(), stars: [], globals: [] }
  for (const statement of program.body) readStatement(module, statement)
  modules.set(file, module)
  return module
}

function readStatement(module, statement) {
  switch (statement.type) {
    case 'ImportDeclaration':
      for (const { type, imported, local } of statement.specifiers) {
        const name = type === 'ImportSpecifier' ? imported.name : type === 'ImportDefaultSpecifier' ? 'default' : '*'
        module.imported.set(local.name, { file: resolved(module, statement.source.value), name })
      }
      return
    case 'ExportAllDeclaration':
      module.stars.push(resolved(module, statement.source.value))
      return
    case 'ExportNamedDeclaration':
      readExport(module, statement)
      return
    case 'TSModuleDeclaration':
    case 'TSGlobalDeclaration':
      module.globals.push(statement)
      return
    default:
      declare(module, statement, statement)
  }
}

function readExport(module, statement) {
  if (statement.declaration) {
    for (const name of declare(module, statement.declaration, statement)) module.exported.set(name, { file: module.file, name })
    return
  }
  const file = statement.source ? resolved(module, statement.source.value) : module.file
  for (const { local, exported, exportKind } of statement.specifiers) {
    const typeOnly = statement.exportKind === 'type' || exportKind === 'type'
    module.exported.set(exported.name, { file, name: local.name, typeOnly })
  }
}

/** Overloads are several statements of one name. */
function declare(module, node, statement) {
  const names = node.declarations?.map(({ id }) => id.name) ?? (node.id ? [node.id.name] : [])
  for (const name of names) module.declared.set(name, [...(module.declared.get(name) ?? []), statement])
  return names
}

/** The file that a relative name means; undefined for packages. */
function resolved({ file }, name) {
  return name.startsWith('.') ? posix.join(posix.dirname(file), name).replace(/\.[jt]s$/, '.d.ts') : undefined
}

/** By name, where each export of a module is declared. */
function exportsOf(modules, file) {
  const { exported, stars } = moduleAt(modules, file)
  const all = new Map(stars.filter((each) => each !== undefined).flatMap((each) => [...exportsOf(modules, each)]))
  for (const [name, { file: from, name: there, typeOnly }] of exported)
    all.set(name, limitedTo(typeOnly, modules, originOf(modules, from, there)))
  return all
}

function limitedTo(typeOnly, modules, origin) {
  const isValue = moduleAt(modules, origin.file)
    .declared.get(origin.name)
    .some((each) => !TYPES.includes((each.declaration ?? each).type))
  return { ...origin, typeOnly: isValue && (typeOnly || origin.typeOnly === true) }
}

const TYPES = ['TSInterfaceDeclaration', 'TSTypeAliasDeclaration']

/** Follows imports and re-exports to the file that declares a name. Undefined if a package does. */
function originOf(modules, file, name) {
  if (file === undefined) return undefined
  const module = moduleAt(modules, file)
  if (module.declared.has(name)) return { file, name }
  const imported = module.imported.get(name)
  if (imported !== undefined) return originOf(modules, imported.file, imported.name)
  return exportsOf(modules, file).get(name)
}

/** All declarations that users can reach: the exported ones, and the types that these name. */
function reachable(modules, paths) {
  const found = new Map()
  const waiting = paths.flatMap(({ file, exported }) => [...exported.values(), ...globalsOf(modules, file)])
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (found.has(idOf(next))) continue
    found.set(idOf(next), next)
    const module = moduleAt(modules, next.file)
    waiting.push(...(module.declared.get(next.name) ?? []).flatMap((each) => namedBy(modules, module, each)))
  }
  return [...found.values()]
}

/** What the global declarations of a module name. */
function globalsOf(modules, file) {
  const module = moduleAt(modules, file)
  return module.globals.flatMap((each) => namedBy(modules, module, each))
}

function namedBy(modules, module, statement) {
  const names = new Set()
  visit(statement, (node) => {
    const name = leftmost(
      node.typeName ?? node.exprName ?? node.superClass ?? (isHeritage(node) || node.computed ? (node.expression ?? node.key) : undefined),
    )
    if (name !== undefined) names.add(name)
  })
  return [...names].flatMap((name) => originOf(modules, module.file, name) ?? [])
}

const isHeritage = ({ type }) => type === 'TSInterfaceHeritage' || type === 'TSClassImplements'

/** `a` of `a.b.c`. */
function leftmost(node) {
  if (node?.type === 'Identifier') return node.name
  return node === undefined || node === null ? undefined : leftmost(node.left ?? node.object)
}

function visit(node, see) {
  if (Array.isArray(node)) for (const each of node) visit(each, see)
  else if (node !== null && typeof node === 'object') {
    if (typeof node.type === 'string') see(node)
    for (const each of Object.values(node)) visit(each, see)
  }
}

/**
 * What a path exports: by name what an earlier one has too, and the rest as it is declared, in the
 * order of their names.
 */
function sectionOf(modules, shown, { name: path, file, exported }) {
  const sorted = [...exported].sort(([a], [b]) => (a < b ? -1 : 1))
  const known = sorted.filter(([, origin]) => shown.has(idOf(origin)))
  const own = sorted.filter(([, origin]) => !shown.has(idOf(origin)))
  for (const [, origin] of own) shown.set(idOf(origin), path)
  const globals = moduleAt(modules, file).globals.map((each) => textOf(moduleAt(modules, file), each))
  return [`## ${path}`, ...namesByPath(shown, known), ...own.flatMap(([, origin]) => textsOf(modules, origin)), ...globals].join('\n\n')
}

/** A line for each earlier path: the names that this one has from there. */
function namesByPath(shown, known) {
  const paths = [...new Set(known.map(([, origin]) => shown.get(idOf(origin))))]
  return paths.map((path) => {
    const names = known.filter(([, origin]) => shown.get(idOf(origin)) === path).map(([name]) => `  ${name}`)
    return [`as in ${path}:`, ...names].join('\n')
  })
}

function textsOf(modules, { file, name, typeOnly }) {
  const module = moduleAt(modules, file)
  return module.declared.get(name).map((each) => `${typeOnly ? '(as a type) ' : ''}${textOf(module, each)}`)
}

/** A declaration as it stands, without comments and indented by two. */
function textOf({ text, comments }, { start, end }) {
  let code = ''
  let at = start
  for (const comment of comments.filter((each) => each.start >= start && each.end <= end)) {
    code += text.slice(at, comment.start)
    at = comment.end
  }
  return (code + text.slice(at, end))
    .replace(/^export (declare )?|^declare (?!global)/, '')
    .replace(/^ +/gm, (spaces) => ' '.repeat(spaces.length / 2))
    .replace(/^\s*\n/gm, '')
    .replace(/ +$/gm, '')
    .replace(/;$/, '')
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(`${root}${REPORT}`, report())
