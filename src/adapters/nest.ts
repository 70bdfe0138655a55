/**
 * NestJS on Express or Fastify: `RateLimitModule.forRoot({ limit })` limits every route; `named` holds further limits that routes ask for
 * with `@Limit('login')`; `@SkipLimit()` lets a route go without. Decorators and modules are metadata; of Nest itself only the exception that
 * filters know is needed, and only here.
 */
import { metadata, type NestModuleOptions, RateLimitedError, RateLimitFilter, RateLimitGuard } from './nest-guard.ts'

export * from '../http/index.ts'
export {
  Limit,
  type NestContext,
  type NestModuleOptions,
  type NestOptions,
  RateLimitedError,
  RateLimitFilter,
  RateLimitGuard,
  SkipLimit,
} from './nest-guard.ts'

export interface NestAsyncOptions {
  readonly imports?: unknown[]
  readonly inject?: unknown[]
  readonly useFactory: (...injected: never[]) => NestModuleOptions | Promise<NestModuleOptions>
}

/** A dynamic module, as Nest takes it. */
export interface NestDynamicModule {
  module: typeof RateLimitModule
  global: boolean
  // biome-ignore lint/suspicious/noExplicitAny: what Nest takes as imports and providers is a union of its own
  imports: any[]
  // biome-ignore lint/suspicious/noExplicitAny: the same
  providers: any[]
  exports: (typeof RateLimitGuard)[]
}

/** Provides `RateLimitGuard` to the whole application, as its first guard, and the filter that answers for it. */
// biome-ignore lint/complexity/noStaticOnlyClass: Nest wants a class to call a module by
export class RateLimitModule {
  static forRoot(options: NestModuleOptions): NestDynamicModule {
    const guard = new RateLimitGuard(options)
    return moduleOf({ provide: RateLimitGuard, useValue: guard }, [])
  }

  static forRootAsync({ imports = [], inject = [], useFactory }: NestAsyncOptions): NestDynamicModule {
    const make = async (...injected: never[]) => new RateLimitGuard(await useFactory(...injected))
    return moduleOf({ provide: RateLimitGuard, useFactory: make, inject }, imports)
  }
}

function moduleOf(guard: object, imports: unknown[]): NestDynamicModule {
  metadata.defineMetadata('__catch__', true, RateLimitFilter)
  metadata.defineMetadata('__filterCatchExceptions__', [RateLimitedError], RateLimitFilter)
  const providers = [guard, { provide: 'APP_GUARD', useExisting: RateLimitGuard }, { provide: 'APP_FILTER', useClass: RateLimitFilter }]
  return { module: RateLimitModule, global: true, imports, providers, exports: [RateLimitGuard] }
}
