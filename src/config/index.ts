export { limitFrom, limitsFrom } from './config.ts'
export { limitSchema } from './schema.ts'
