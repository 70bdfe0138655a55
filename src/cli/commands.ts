/** The commands that need nothing but the library. The service has them too. */
import { inspectCommand } from './inspect.ts'
import { migrateCommand } from './postgres.ts'
import type { Commands } from './run.ts'
import { simulateCommand } from './simulate-command.ts'

export const LIBRARY_COMMANDS: Commands = { simulate: simulateCommand, inspect: inspectCommand, migrate: migrateCommand }
