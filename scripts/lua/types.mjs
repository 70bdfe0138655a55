// The few facts about types that decide how an expression becomes Lua: there 0 and '' are true, and
// only false and nil are not.
//
// A type is { kind, isOptional? } with more by kind: `of` for arrays, `node`, `source` and `names`
// for objects that are declared, `returns` and `parameters` for functions. `isOptional`: may be
// undefined.

export const NUMBER = { kind: 'number' }
export const STRING = { kind: 'string' }
export const BOOLEAN = { kind: 'boolean' }
export const NOTHING = { kind: 'nothing', isOptional: true }
export const UNKNOWN = { kind: 'unknown', isOptional: true }

/** Never false and never nil, so it may stand between `and` and `or`. */
export function isAlwaysTrue(type) {
  return !type.isOptional && type.kind !== 'boolean' && type.kind !== 'unknown'
}

/** The type of what is one or the other. */
export function either(a, b) {
  if (a.kind === 'nothing') return { ...b, isOptional: true }
  if (b.kind === 'nothing') return { ...a, isOptional: true }
  return a.kind === b.kind ? { ...a, isOptional: a.isOptional || b.isOptional } : UNKNOWN
}

const KEYWORDS = {
  TSNumberKeyword: NUMBER,
  TSStringKeyword: STRING,
  TSBooleanKeyword: BOOLEAN,
  TSUndefinedKeyword: NOTHING,
  TSVoidKeyword: NOTHING,
}

export class Types {
  #program

  /** @param program tells what an import leads to: `source(path)` */
  constructor(program) {
    this.#program = program
  }

  /**
   * The type that a node of the source means. `names` holds the type arguments that are known by
   * name.
   */
  read(source, node, names = {}) {
    if (node === null || node === undefined) return UNKNOWN
    if (node.type === 'TSTypeAnnotation') return this.read(source, node.typeAnnotation, names)
    if (node.type in KEYWORDS) return KEYWORDS[node.type]
    switch (node.type) {
      case 'TSLiteralType':
        return { kind: typeof node.literal.value }
      case 'TSUnionType':
        return node.types.map((each) => this.read(source, each, names)).reduce(either)
      case 'TSArrayType':
        return { kind: 'array', of: this.read(source, node.elementType, names) }
      case 'TSTypeOperator':
        return this.read(source, node.typeAnnotation, names)
      case 'TSFunctionType':
      case 'TSMethodSignature':
        return this.#callable(source, node, names)
      case 'TSTypeLiteral':
        return { kind: 'object', node, source, names }
      case 'TSTypeReference':
        return this.#named(source, node, names)
      default:
        return UNKNOWN
    }
  }

  /** What a function, a method or their signature takes and returns. */
  #callable(source, node, names) {
    const parameters = node.params.map((each) => this.read(source, each.typeAnnotation, names))
    return { kind: 'function', parameters, returns: this.read(source, node.returnType, names) }
  }

  ofFunction(source, node) {
    return this.#callable(source, node, {})
  }

  #named(source, node, names) {
    const { name } = node.typeName
    const given = (node.typeArguments?.params ?? []).map((each) => this.read(source, each, names))
    if (name in names) return names[name]
    if (name === 'Float64Array') return { kind: 'array', of: NUMBER }
    if (name === 'Readonly' || name === 'Required') return given[0]
    if (name === 'NonNullable') return { ...given[0], isOptional: false }
    const found = this.#find(source, name)
    if (found === undefined) return UNKNOWN
    const inner = {}
    for (const [k, { name: parameter, constraint, default: usual }] of (found.node.typeParameters?.params ?? []).entries()) {
      inner[parameter.name] = given[k] ?? this.read(found.source, usual ?? constraint, inner)
    }
    if (found.node.type === 'TSTypeAliasDeclaration') return this.read(found.source, found.node.typeAnnotation, inner)
    return { kind: 'object', node: found.node, source: found.source, names: inner }
  }

  #find(source, name) {
    const node = source.types.get(name)
    if (node !== undefined) return { source, node }
    const imported = source.imports.get(name)
    return imported?.path === undefined ? undefined : this.#find(this.#program.source(imported.path), imported.name)
  }

  /** What a member of an object is, and whether it is readonly. */
  member(type, name) {
    if (type.kind === 'array' && name === 'length') return { type: NUMBER, isReadonly: true }
    if (type.node === undefined) return { type: UNKNOWN, isReadonly: false }
    const { node, source, names } = type
    const body = node.members ?? node.body.body
    const member = body.find((each) => each.key?.name === name)
    if (member !== undefined) {
      const read = this.read(source, member.type === 'TSMethodSignature' ? member : member.typeAnnotation, names)
      return { type: member.optional ? { ...read, isOptional: true } : read, isReadonly: member.readonly === true }
    }
    for (const { expression, typeArguments } of node.extends ?? []) {
      const inherited = this.#named(source, { typeName: expression, typeArguments }, names)
      const found = this.member(inherited, name)
      if (found.type !== UNKNOWN) return found
    }
    return { type: UNKNOWN, isReadonly: false }
  }
}
