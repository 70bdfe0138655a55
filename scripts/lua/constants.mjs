// Numbers and texts that are known before anything runs.

const NUMBERS = {
  MAX_SAFE_INTEGER: Number.MAX_SAFE_INTEGER,
  POSITIVE_INFINITY: Number.POSITIVE_INFINITY,
}

const OPERATORS = {
  '+': (a, b) => a + b,
  '-': (a, b) => a - b,
  '*': (a, b) => a * b,
  '/': (a, b) => a / b,
  '**': (a, b) => a ** b,
}

/**
 * The value of an expression, or undefined if it is not constant. `named` gives the value of a
 * name, or undefined.
 */
export function constantOf(node, named) {
  switch (node.type) {
    case 'Literal':
      return typeof node.value === 'number' || typeof node.value === 'string' ? node.value : undefined
    case 'Identifier':
      return named(node.name)
    case 'TSAsExpression':
    case 'TSSatisfiesExpression':
      return constantOf(node.expression, named)
    case 'MemberExpression':
      return !node.computed && node.object.name === 'Number' ? NUMBERS[node.property.name] : undefined
    case 'UnaryExpression':
      return node.operator === '-' ? numbers((a) => -a, constantOf(node.argument, named)) : undefined
    case 'BinaryExpression': {
      const operator = OPERATORS[node.operator]
      return operator && numbers(operator, constantOf(node.left, named), constantOf(node.right, named))
    }
    default:
      return undefined
  }
}

function numbers(operator, ...operands) {
  return operands.every((each) => typeof each === 'number') ? operator(...operands) : undefined
}
