import { Body, Controller, Get, HttpCode, Param, Post } from '@nestjs/common';
import { ApiOperation, ApiProperty, ApiResponse, ApiTags, DocumentBuilder, SwaggerModule } from '@nestjs/swagger';
import { Test } from '@nestjs/testing';
import { DistributedLock } from '../../../lib/nest/decorator/distributed-lock.decorator.js';
import { RedisLockModule } from '../../../lib/nest/redis-lock.module.js';

class Order {
  @ApiProperty()
  id!: string;
}

const locked = () => DistributedLock('order:#<args[0]>');
const unlocked = (): MethodDecorator => () => {};

/** The same controller with the lock above, between and below the other decorators. */
const controller = (above: () => MethodDecorator, between: () => MethodDecorator, below: () => MethodDecorator) => {
  @Controller('orders')
  class OrdersController {
    @above()
    @Get(':id')
    @ApiOperation({ summary: 'Finds an order' })
    @between()
    @ApiResponse({ status: 200, type: Order })
    @below()
    async find(@Param('id') _id: string): Promise<Order> {
      return new Order();
    }

    @above()
    @ApiTags('placing')
    @Post()
    @HttpCode(202)
    @between()
    @ApiOperation({ operationId: 'place' })
    @below()
    async place(@Body() order: Order): Promise<Order> {
      return order;
    }
  }
  return OrdersController;
};

const document = async (type: ReturnType<typeof controller>) => {
  const module = await Test.createTestingModule({
    imports: [RedisLockModule.forRoot({ backend: 'memory' })],
    controllers: [type],
  }).compile();
  const app = module.createNestApplication({ logger: false });
  const result = SwaggerModule.createDocument(app, new DocumentBuilder().setTitle('Shop').build());
  await app.close();
  return result;
};

describe('with @nestjs/swagger', () => {
  it.each([
    ['above', [locked, unlocked, unlocked]],
    ['between', [unlocked, locked, unlocked]],
    ['below', [unlocked, unlocked, locked]],
    ['above, between and below', [locked, locked, locked]],
  ] as [string, Parameters<typeof controller>][])(
    'the document is the same with the lock %s the other decorators',
    async (_where, place) => {
      const plain = await document(controller(unlocked, unlocked, unlocked));
      expect(plain.paths['/orders/{id}'].get?.summary).toBe('Finds an order');
      expect(await document(controller(...place))).toEqual(plain);
    },
  );
});
