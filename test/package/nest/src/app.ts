/**
 * A Nest application as its users write them: decorators, guards, GraphQL, a gateway and a handler
 * of messages.
 */
import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo'
import { type CanActivate, Controller, type ExecutionContext, Get, Injectable, Module, UseGuards } from '@nestjs/common'
import { GraphQLModule, Query, Resolver } from '@nestjs/graphql'
import { MessagePattern } from '@nestjs/microservices'
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets'
import { gcra } from 'sluice'
import { byUser, Limit, RateLimitGuard, RateLimitModule, SkipLimit } from 'sluice/nest'

interface SignedIn {
  user?: { id: string }
}

@Injectable()
export class AuthGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<SignedIn & { headers: Record<string, string> }>()
    request.user = { id: request.headers['x-user'] ?? 'nobody' }
    return true
  }
}

@Controller()
export class Routes {
  @Get('mine')
  @UseGuards(AuthGuard, RateLimitGuard)
  mine(): string {
    return 'mine'
  }

  @Get('strict')
  @Limit(gcra({ rate: '1/h', burst: 1 }))
  strict(): string {
    return 'strict'
  }

  @Get('health')
  @SkipLimit()
  health(): string {
    return 'fine'
  }

  @MessagePattern('orders')
  orders(): string {
    return 'orders'
  }

  @MessagePattern('skipped')
  @SkipLimit()
  skipped(): string {
    return 'skipped'
  }
}

@Resolver()
export class Greetings {
  @Query(() => String)
  @Limit('graphql')
  hello(): string {
    return 'hello'
  }

  @Query(() => String)
  @SkipLimit()
  free(): string {
    return 'free'
  }
}

@WebSocketGateway()
export class Chat {
  @SubscribeMessage('say')
  say(): string {
    return 'said'
  }
}

const limit = gcra({ rate: '1/h', burst: 2 })

@Module({
  imports: [
    RateLimitModule.forRoot({
      limit,
      key: byUser((request: SignedIn) => request.user?.id),
      named: { graphql: { limit: gcra({ rate: '1/h', burst: 3 }) } },
    }),
    GraphQLModule.forRoot<ApolloDriverConfig>({ driver: ApolloDriver, autoSchemaFile: true, playground: false }),
  ],
  controllers: [Routes],
  providers: [Greetings, Chat],
})
export class AppModule {}
