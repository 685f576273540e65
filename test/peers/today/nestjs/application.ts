// A NestJS application with `@traced` above, between and below its decorators. It is compiled by tsc, because NestJS needs
// legacy decorators with parameter types.
import 'reflect-metadata';
import {
  type CallHandler,
  type CanActivate,
  Controller,
  Delete,
  type ExecutionContext,
  Get,
  HttpCode,
  type INestApplication,
  Module,
  type NestInterceptor,
  Param,
  ParseIntPipe,
  Post,
  Query,
  SetMetadata,
  UseGuards,
  UseInterceptors,
  UsePipes,
} from '@nestjs/common';
import { NestFactory, Reflector } from '@nestjs/core';
import { map, type Observable } from 'rxjs';

type MethodDecorator = (target: object, key: string | symbol, descriptor: PropertyDescriptor) => void;

export interface Tracing {
  readonly traced: MethodDecorator & ((options: { name: string }) => MethodDecorator);
  traceMethods<Target extends object>(target: Target, methods: readonly string[]): Target;
}

class Deny implements CanActivate {
  canActivate(): boolean {
    return false;
  }
}

class RolesGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const roles = new Reflector().get<string[] | undefined>('roles', context.getHandler());
    return roles?.includes('reader') === true;
  }
}

class Framed implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler): Observable<unknown> {
    return next.handle().pipe(map((value) => `[${value}]`));
  }
}

const none: MethodDecorator = () => {};

/** Creates a controller with `@traced` at the given place, or untraced for `none`. */
function controllerAt(path: string, above: MethodDecorator, between: MethodDecorator, below: MethodDecorator) {
  @Controller(path)
  class Answers {
    private readonly word = path;

    @above
    @Get('plain')
    @between
    @UseGuards(Deny)
    @below
    denied(): string {
      return 'secret';
    }

    @above
    @SetMetadata('roles', ['reader'])
    @between
    @UseGuards(RolesGuard)
    @below
    @Get('roles')
    roles(): string {
      return `${this.word} roles`;
    }

    @above
    @Post('code')
    @between
    @HttpCode(418)
    @below
    code(): string {
      return `${this.word} code`;
    }

    @above
    @UseInterceptors(Framed)
    @between
    @UsePipes(ParseIntPipe)
    @below
    @Get('double/:id')
    double(@Param('id') id: number, @Query('by') by: number): string {
      return `${this.word} ${id * by} ${typeof id}`;
    }

    @above
    @Delete('later')
    @between
    @HttpCode(202)
    @below
    async later(): Promise<{ word: string }> {
      return { word: this.word };
    }
  }
  return Answers;
}

const methods = ['denied', 'roles', 'code', 'double', 'later'];

export async function start({ traced, traceMethods }: Tracing): Promise<{ url: string; app: INestApplication }> {
  const named = controllerAt('withOptions', traced({ name: 'named' }), none, none);
  const controllers = [
    controllerAt('untraced', none, none, none),
    controllerAt('above', traced, none, none),
    controllerAt('between', none, traced, none),
    controllerAt('below', none, none, traced),
    controllerAt('everywhere', traced, traced, traced),
    named,
    traceMethods(controllerAt('methods', none, none, none), methods),
    traceMethods(controllerAt('both', none, traced, none), methods),
  ];

  @Module({ controllers })
  class Application {}

  const app = await NestFactory.create(Application, { logger: false });
  await app.listen(0, '127.0.0.1');
  return { app, url: await app.getUrl() };
}
