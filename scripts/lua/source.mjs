// Reads one module of TypeScript: what it imports and declares at the top, and where its comments
// stand.
import { readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { parseSync } from 'rolldown/utils'

/**
 * @param {URL} root where paths start
 * @param {string} path of the module, from the root
 */
export function readSource(root, path) {
  const text = readFileSync(new URL(path, root), 'utf8')
  const { program, comments, errors } = parseSync(path, text, { lang: 'ts', preserveParens: false })
  if (errors.length > 0) throw new Error(`${path}: ${errors[0].message}`)
  const source = { path, text, comments, values: new Map(), types: new Map(), imports: new Map() }
  for (const statement of program.body) readTopLevel(source, statement, statement)
  return source
}

/** Stops with the place in the source and what is not allowed there. */
export function fail(source, node, message) {
  const before = source.text.slice(0, node.start).split('\n')
  throw new Error(`${source.path}:${before.length}:${before.at(-1).length + 1}: ${message}`)
}

/** The doc comment that stands right above a node, as lines of text. */
export function docAbove(source, node) {
  const above = source.comments.filter(({ type, end }) => type === 'Block' && end <= node.start).at(-1)
  if (above === undefined || !above.value.startsWith('*') || source.text.slice(above.end, node.start).trim() !== '') return []
  return above.value
    .slice(1)
    .split('\n')
    .map((line) => line.replace(/^\s*\*? ?/, '').trimEnd())
    .filter((line, at, lines) => line !== '' || (at > 0 && at < lines.length - 1))
}

/** `statement` is where the declaration begins, with `export`. */
function readTopLevel(source, node, statement) {
  switch (node.type) {
    case 'ImportDeclaration':
      for (const { type, imported, local } of node.specifiers) {
        if (type === 'ImportSpecifier') source.imports.set(local.name, { path: pathOf(source, node.source.value), name: imported.name })
      }
      return
    case 'ExportNamedDeclaration':
      if (node.declaration) readTopLevel(source, node.declaration, statement)
      return
    case 'FunctionDeclaration':
      source.values.set(node.id.name, { node, statement })
      return
    case 'VariableDeclaration':
      for (const each of node.declarations) {
        if (each.id.type === 'Identifier') source.values.set(each.id.name, { node: each, statement, isConst: node.kind === 'const' })
      }
      return
    case 'TSInterfaceDeclaration':
    case 'TSTypeAliasDeclaration':
      source.types.set(node.id.name, node)
  }
}

/** Where an import leads, from the root; undefined for a package. */
function pathOf(source, specifier) {
  return specifier.startsWith('.') ? posix.join(posix.dirname(source.path), specifier) : undefined
}
