// NestJS: a module for the whole application, and decorators for the routes that differ.
import 'reflect-metadata'
import { Controller, Get, Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { createLimiter, gcra, slidingLog } from 'sluice'
import { Limit, RateLimitModule, SkipLimit } from 'sluice/nest'
import { fakeClock } from 'sluice/testing'

const clock = fakeClock() // in production: { limit: gcra({ ... }) } instead of limiters
const limiter = createLimiter(gcra({ rate: '1/s', burst: 2 }), { clock })
const login = createLimiter(slidingLog({ limit: 1, window: '1min' }), { clock })

@Controller()
class Routes {
  @Get()
  home() {
    return 'home'
  }

  @Get('login')
  @Limit('login')
  login() {
    return 'welcome'
  }

  @Get('health')
  @SkipLimit()
  health() {
    return 'fine'
  }
}

@Module({ imports: [RateLimitModule.forRoot({ limiter, named: { login: { limiter: login } } })], controllers: [Routes] })
class App {}

const app = await NestFactory.create(App, { logger: false })
await app.listen(0, '127.0.0.1')
for (const path of ['', '', '', 'login', 'login', 'health']) {
  const response = await fetch(`${await app.getUrl()}/${path}`)
  console.log(`/${path}`, response.status)
  await response.text()
}
app.getHttpServer().closeAllConnections()
await app.close()

// prints:
// / 200
// / 200
// / 429
// /login 200
// /login 429
// /health 200
