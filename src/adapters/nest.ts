/**
 * NestJS on Express or Fastify: `RateLimitModule.forRoot({ limit })` limits every handler of HTTP
 * and GraphQL; `@Limit('login')` applies one of the `named` limits to a handler,
 * `@Limit(gcra({ ... }))` numbers of its own; `@SkipLimit()` lets it go without.
 * `@UseGuards(AuthGuard, RateLimitGuard)` says when a handler is limited.
 */
import { DiscoveryModule } from '@nestjs/core'
import { NestBoot } from './nest-boot.ts'
import { GlobalRateLimitGuard, RateLimitFilter, RateLimitGuard } from './nest-guard.ts'
import { NestLimits, type NestModuleOptions } from './nest-limits.ts'

export * from '../http/index.ts'
export { type NestContext, RateLimitedError, RateLimitFilter, RateLimitGuard } from './nest-guard.ts'
export { Limit, type NestLimit, NestLimits, type NestModuleOptions, type NestOptions, SkipLimit } from './nest-limits.ts'

/** A class that makes the options, for `useClass` and `useExisting`. */
export interface RateLimitOptionsFactory {
  createRateLimitOptions(): NestModuleOptions | Promise<NestModuleOptions>
}

export type NestAsyncOptions = { readonly imports?: unknown[] } & (
  | {
      readonly useFactory: (...injected: never[]) => NestModuleOptions | Promise<NestModuleOptions>
      readonly inject?: unknown[]
    }
  | { readonly useClass: new (...injected: never[]) => RateLimitOptionsFactory }
  | { readonly useExisting: unknown }
)

/** A dynamic module, as Nest takes it. */
export interface NestDynamicModule {
  module: typeof RateLimitModule
  global: boolean
  // biome-ignore lint/suspicious/noExplicitAny: what Nest takes as imports and providers is a union of its own
  imports: any[]
  // biome-ignore lint/suspicious/noExplicitAny: what Nest takes as imports and providers is a union of its own
  providers: any[]
  exports: (typeof RateLimitGuard | typeof NestLimits)[]
}

/**
 * Provides `RateLimitGuard` to the whole application, as its first guard, and the filter that
 * answers for it.
 */
// biome-ignore lint/complexity/noStaticOnlyClass: Nest wants a class to call a module by
export class RateLimitModule {
  static forRoot(options: NestModuleOptions): NestDynamicModule {
    return moduleOf([{ provide: NestLimits, useValue: new NestLimits(options) }])
  }

  static forRootAsync(options: NestAsyncOptions): NestDynamicModule {
    return moduleOf(providersOf(options), options.imports)
  }
}

type Making = Extract<NestAsyncOptions, { useFactory: unknown }>['useFactory']

function providersOf(options: NestAsyncOptions): object[] {
  if ('useFactory' in options) return [limitsBy(options.useFactory, options.inject ?? [])]
  const useOf: Making = (factory: RateLimitOptionsFactory) => factory.createRateLimitOptions()
  if ('useClass' in options) return [options.useClass, limitsBy(useOf, [options.useClass])]
  return [limitsBy(useOf, [options.useExisting])]
}

function limitsBy(make: Making, inject: unknown[]): object {
  return { provide: NestLimits, useFactory: async (...injected: never[]) => new NestLimits(await make(...injected)), inject }
}

function moduleOf(limits: object[], imports: unknown[] = []): NestDynamicModule {
  const providers = [
    ...limits,
    RateLimitGuard,
    NestBoot,
    { provide: 'APP_GUARD', useClass: GlobalRateLimitGuard },
    { provide: 'APP_FILTER', useClass: RateLimitFilter },
  ]
  return { module: RateLimitModule, global: true, imports: [DiscoveryModule, ...imports], providers, exports: [RateLimitGuard, NestLimits] }
}
