/** The TypeScript that makes a limiter. */
import { FIELDS, type LimitType } from '../simulation/limits.ts'
import type { LimitData } from '../sluice.ts'

export function limiterCode(data: LimitData): string {
  const type = data.type as LimitType
  const options = FIELDS[type].filter((name) => data[name] !== undefined).map((name) => `${name}: ${literal(data[name])}`)
  return `import { createLimiter, ${type} } from 'sluice'

export const limiter = createLimiter(${type}({ ${options.join(', ')} }))

const decision = limiter.consume('user:42')
if (decision.allowed) console.log(\`\${decision.remaining} left\`)
else console.log(\`come back in \${decision.retryAfterMs} ms\`)
`
}

const literal = (value: unknown): string => (typeof value === 'string' ? `'${value.replace(/[\\']/g, '\\$&')}'` : JSON.stringify(value))
