export const USER: string
export type Settings = Readonly<Record<string, string | number>>
export interface PostgresServer {
  readonly host: string
  readonly port: number
  readonly url: string
  readonly pid: number
  stop(signal?: 'SIGINT' | 'SIGQUIT'): Promise<void>
  start(): Promise<void>
  promote(): void
  remove(): Promise<void>
}
export interface Pgbouncer {
  readonly port: number
  readonly url: string
  remove(): Promise<void>
}
export function postgresProgram(name: string): string | undefined
export interface PostgresWithClock {
  readonly url: string
  setClock(seconds: number): void
  remove(): Promise<void>
}
export function fakeTimeLibrary(): string | undefined
export function startPostgres(settings?: Settings, env?: Readonly<Record<string, string>>): Promise<PostgresServer>
export function startPostgresFrom(native: string, settings?: Settings): Promise<Pick<PostgresServer, 'url' | 'remove'>>
export function startPostgresWithClock(settings?: Settings): Promise<PostgresWithClock>
export function startStandby(primary: PostgresServer, settings?: Settings): Promise<PostgresServer>
export function startPgbouncer(server: Pick<PostgresServer, 'host' | 'port'>, settings?: Settings): Promise<Pgbouncer>
