// biome-ignore-all lint/suspicious/noTemplateCurlyInString: what others write for a placeholder
import { LockConfigurationError, LockKeyError } from '../../../lib/engine/errors.js';
import { compileLockedMethod } from '../../../lib/nest/decorator/compile-locked-method.js';
import { DistributedLock } from '../../../lib/nest/decorator/distributed-lock.decorator.js';
import { SingleFlight } from '../../../lib/nest/decorator/single-flight.decorator.js';
import { compileTemplate } from '../../../lib/nest/key-template/key-template.js';

/** What the types refuse, too. */
const untyped = (key: string | string[]) => DistributedLock(key as never) as MethodDecorator;

class Order {
  #reference = 'secret';
  readonly tags: string[] = [];
  constructor(readonly id: unknown) {}
  get reference() {
    return this.#reference;
  }
  total() {
    return 3;
  }
}

class RushOrder extends Order {}

class Shop {
  readonly region = 'eu';
}

const names = (template: string, ...args: unknown[]) =>
  compileTemplate(template, 'Shop.sell', 'sell')({ instance: new Shop(), args, method: 'sell' });

describe('a key template', () => {
  it('is taken as it stands when there is nothing to fill in', () => {
    expect(names('report:{nightly} #1 <b> 100%')).toBe('report:{nightly} #1 <b> 100%');
  });

  it('fills in arguments, properties of the instance, class and method', () => {
    expect(names('a:#<args[0]>:#<args[1].user.name>', 7, { user: { name: 'Ann' } })).toBe('a:7:Ann');
    expect(names('#<class>.#<method>@#<this.region>')).toBe('Shop.sell@eu');
    expect(names('#<class>.#<method>')).toBe('Shop.sell');
    expect(names('m:#<method>')).toBe('m:sell');
  });

  it('fills in strings, numbers, bigints and booleans', () => {
    expect(names('#<args[0]>|#<args[1]>|#<args[2]>|#<args[3]>', 'x', 0, 9007199254740993n, false)).toBe(
      'x|0|9007199254740993|false',
    );
  });

  it('encodes what is filled in, so that two calls share a name only if their arguments are the same', () => {
    expect(names('#<args[0]>:#<args[1]>', 'a:b', 'c')).toBe('a%3Ab:c');
    expect(names('#<args[0]>:#<args[1]>', 'a', 'b:c')).toBe('a:b%3Ac');
    expect(names('#<args[0]>', '{x}%\n')).toBe('%7Bx%7D%25%0A');
    expect(names('#<args[0]>', '%7Bx%7D')).toBe('%257Bx%257D');
    expect(names('#<args[0]>', 'Ünï → 日本 😀')).toBe('Ünï → 日本 😀');
    expect(names('{#<args[0]>}:x', 'a}b')).toBe('{a%7Db}:x');
  });

  it('reads accessors that the class of an object declares, also inherited ones', () => {
    expect(names('#<args[0].reference>', new RushOrder(1))).toBe('secret');
  });

  it('may use only parameters that the method has', () => {
    const refusal = (define: () => unknown, path: string, parameters: string) => {
      expect(define).toThrow(LockConfigurationError);
      expect(define).toThrow(`Sale.sell: #<${path}> of the key`);
      expect(define).toThrow(
        `cannot be filled in, because the method has ${parameters}, and the first one is #<args[0]>`,
      );
    };
    const one = () => {
      class Sale {
        @untyped('order:#<args[1].id>')
        async sell(_order: Order) {}
      }
      return Sale;
    };
    refusal(one, 'args[1].id', '1 parameter');
    const none = () => {
      class Sale {
        @untyped(['sale', 'order:#<args[0]>'])
        async sell() {}
      }
      return Sale;
    };
    refusal(none, 'args[0]', '0 parameters');
    const flight = () => {
      class Sale {
        @SingleFlight('order:#<args[2]>' as string)
        async sell(_id: string, _lot?: string) {}
      }
      return Sale;
    };
    refusal(flight, 'args[2]', '2 parameters');
  });

  it('may use a parameter with a default, a rest parameter, and what another decorator takes', () => {
    const Wrapped = (): MethodDecorator => (_target, _key, descriptor: PropertyDescriptor) => {
      const body = descriptor.value;
      descriptor.value = (...args: unknown[]) => body(...args);
    };
    class Sale {
      @untyped('order:#<args[2]>')
      async afterDefault(_id = '', _lot?: string, _region?: string) {}

      @untyped('order:#<args[5]>')
      async rest(..._ids: string[]) {}

      @untyped('order:#<args[5]>')
      async restAfter(_id: string, ..._ids: string[]) {}

      @untyped('order:#<args[1]>')
      async optional(_id: string, _lot?: string) {}

      @untyped('order:#<args[1]>')
      @Wrapped()
      async wrapped(_id: string, _lot: string) {}
    }
    expect(new Sale()).toBeInstanceOf(Sale);
  });

  it('gives a name for every element of [*]', () => {
    const order = { items: [{ sku: 'a' }, { sku: 'b' }] };
    expect(names('sku:#<args[0].items[*].sku>!', order)).toEqual(['sku:a!', 'sku:b!']);
    expect(names('#<args[*]>', 1, 2)).toEqual(['1', '2']);
    expect(names('#<args[1]>:#<args[0][*]>', new Set(['x', 'y']), 'eu')).toEqual(['eu:x', 'eu:y']);
    expect(names('#<args[0][*].items[*].sku>', [order, { items: [{ sku: 'c' }] }])).toEqual(['a', 'b', 'c']);
  });

  describe('stops the start when it holds a placeholder of another notation, by its position and the right spelling', () => {
    it.each([
      ['order:#{args[0]}', 7, '#{args[0]}', 'write #<args[0]>'],
      ['order:#{args[0].id}:x', 7, '#{args[0].id}', 'write #<args[0].id>'],
      ['order:#{ args[0] }', 7, '#{ args[0] }', 'write #<args[0]>'],
      ['order:#args[0]', 7, '#args[0]', 'write #<args[0]>'],
      ['order:#args[0].user.id:x', 7, '#args[0].user.id', 'write #<args[0].user.id>'],
      ['order:<args[0]>', 7, '<args[0]>', 'write #<args[0]>'],
      ['order:{{args[0]}}', 7, '{{args[0]}}', 'write #<args[0]>'],
      ['order:{args[0]}', 7, '{args[0]}', 'write #<args[0]>'],
      ['order:args[0].items[*].sku', 7, 'args[0].items[*].sku', 'write #<args[0].items[*].sku>'],
      ['order::args[0]', 8, 'args[0]', 'write #<args[0]>'],
      ['order:$args[0]', 7, '$args[0]', 'write #<args[0]>'],
      ['order:(args[0])', 8, 'args[0])', 'write #<args[0]>'],
      ['order:${args[0]}', 7, '${args[0]}', 'write #<args[0]>'],
      ['order:${id}', 7, '${id}', 'write #<args[0]> for the first argument'],
      ['order:${this.region}', 7, '${this.region}', 'write #<this.region>'],
      ['shop:this.region', 6, 'this.region', 'write #<this.region>'],
      ['order:{{id}}', 7, '{{id}}', 'write #<args[0]> for the first'],
      ['order:%{id}', 7, '%{id}', 'write #<args[0]> for the first'],
      ['order:#orderId', 7, '#orderId', '#<args[0].id> for a property of it'],
      ['order#orderId', 6, '#orderId', '#<args[0].id> for a property of it'],
      ['order:#p0', 7, '#p0', 'write #<args[0]>'],
      ['order:#a1', 7, '#a1', 'write #<args[1]>'],
      ['order:#[2]', 7, '#[2]', 'write #<args[2]>'],
      ['order:{0}', 7, '{0}', 'write #<args[0]>'],
      ['order:$id', 7, '$id', 'write #<args[0]> for the first'],
      ['orders/:id', 7, '/:id', 'write #<args[0]> for the first'],
      ['order:%s', 7, '%s', 'write #<args[0]> for the first'],
      ['%d:%s', 1, '%d', 'write #<args[0]> for the first'],
      ['<class>.sell', 1, '<class>', 'write #<class>'],
      ['#class', 1, '#class', 'write #<class>'],
      ['{method}:x', 1, '{method}', 'write #<method>'],
      ['#<class>:#{args[0]}', 10, '#{args[0]}', 'write #<args[0]>'],
      ['#<class>:#<args[0]>:${id}', 21, '${id}', 'write #<args[0]> for the first'],
    ])('%s', (template, position, found, remedy) => {
      const compile = () => compileTemplate(template, 'Shop.sell', 'sell');
      expect(compile).toThrow(LockConfigurationError);
      expect(compile).toThrow(
        `Shop.sell: the key '${template}' is wrong at character ${position}: '${found}' is not filled in`,
      );
      expect(compile).toThrow(remedy);
      expect(compile).toThrow('use a key function');
    });

    it.each([
      'issue#42',
      '#1',
      'C#',
      'a{b}c',
      '{order}',
      'order:{42}:item',
      '{order}:#<args[0]>',
      'a < b',
      'a <b> c',
      '100%',
      '100% off',
      '%7Border%7D',
      'US$',
      '$5',
      'https://shop.example/orders',
      'mail:ann@example.org',
      'arguments',
      'my-args:x',
      'this:and:that',
      'method:class',
      '注文#1',
      '{#<args[0]>}',
    ])('%s is not one', (template) => {
      expect(names(template, 'x')).toBe(template.replace('#<args[0]>', 'x'));
    });

    it('but a key function may return such text', async () => {
      const locked = compileLockedMethod(
        {},
        'sell',
        async () => {},
        () => 'order:${id}',
        'Shop.sell',
      );
      expect(locked.namesOf({ instance: {}, args: [], method: 'sell' })).toBe('order:${id}');
    });

    it('is refused in a list of templates, too, when the decorator is applied', () => {
      const define = () => {
        class Orders {
          @DistributedLock(['orders', 'order:#{args[0]}'])
          async ship(_id: string) {}
        }
        return Orders;
      };
      expect(define).toThrow("Orders.ship: the key 'order:#{args[0]}' is wrong at character 7");
    });
  });

  describe('stops the start when it is malformed', () => {
    it.each([
      ['order:#<args[0]', 16, "the closing '>' is missing"],
      ['order:#<', 9, "the closing '>' is missing"],
      ['#<>', 3, 'a path begins with args, this, class, method'],
      ['#<arg[0]>', 3, "not with 'arg'"],
      ['#<args>', 7, "'args' must be followed by [0], [1], … or [*]"],
      ['#<args.id>', 7, "'args' must be followed by"],
      ['#<args[x]>', 7, "'[' must be followed by a number or *"],
      ['#<args[0>', 7, "'[' must be followed by a number or *"],
      ['#<args[-1]>', 7, "'[' must be followed by a number or *"],
      ['#<args[0].>', 11, "'.' must be followed by a property name"],
      ['#<args[0]..id>', 11, "'.' must be followed by a property name"],
      ['#<args[0].get()>', 14, "'(' is not expected here"],
      ['#<args[0] >', 10, "' ' is not expected here"],
      ['#<this>', 7, "'this' alone is not a key"],
      ['#<class.name>', 8, 'nothing can follow it'],
      ['#<args[0].__proto__>', 11, "'__proto__' cannot be part of a key"],
      ['#<args[0].constructor>', 11, "'constructor' cannot be part of a key"],
      ['x#<this.prototype>', 9, "'prototype' cannot be part of a key"],
    ])('%s (character %i)', (template, position, reason) => {
      const compile = () => compileTemplate(template, 'Shop.sell', 'sell');
      expect(compile).toThrow(LockConfigurationError);
      expect(compile).toThrow(`Shop.sell: the key '${template}' is wrong at character ${position}: `);
      expect(compile).toThrow(reason);
    });

    it.each([
      ['empty', ''],
      ['unbalanced', 'a{'],
      ['empty brace', 'a{}#<args[0]>'],
      ['unbalanced', '{#<args[0]>'],
      ['2048 bytes', 'x'.repeat(2048)],
      ['more than one path with [*]', '#<args[0][*]>#<args[1][*]>'],
    ])('%s', (reason, template) => {
      const compile = () => compileTemplate(template, 'Shop.sell', 'sell');
      expect(compile).toThrow(LockConfigurationError);
      expect(compile).toThrow('Shop.sell');
      expect(compile).toThrow(reason);
    });
  });

  describe('gives no name, but an error that says what was found', () => {
    it.each([
      ['it is undefined', '#<args[9]>', [1]],
      ['it is undefined', '#<args[0]>', [undefined]],
      ['it is null', '#<args[0]>', [null]],
      ['it is NaN', '#<args[0]>', [Number.NaN]],
      ['it is Infinity', '#<args[0]>', [Number.POSITIVE_INFINITY]],
      ['it is an empty string', '#<args[0]>', ['']],
      ['it is a symbol', '#<args[0]>', [Symbol('x')]],
      ['it is a function', '#<args[0]>', [() => 1]],
      ['it is an object (Order)', '#<args[0]>', [new Order(1)]],
      ['it is an object (Array)', '#<args[0]>', [['a']]],
      ['it is an object (Date)', '#<args[0]>', [new Date()]],
      ['it is an object (without a class)', '#<args[0]>', [Object.create(null)]],
      ['2048 characters', '#<args[0]>', ['x'.repeat(2048)]],
      ['lone surrogate', '#<args[0]>', ['\ud800']],
      ['args[0].customer is undefined, so there is no args[0].customer.id', '#<args[0].customer.id>', [{}]],
      ['args[0] is a string, so there is no args[0].id', '#<args[0].id>', ['text']],
      ['args[0].items is an object, not an array', '#<args[0].items[2]>', [{ items: {} }]],
      ['it is undefined', '#<args[0].items[2]>', [{ items: [] }]],
      ['args[0].items is a string, not an array or a Set', '#<args[0].items[*].sku>', [{ items: 'abc' }]],
      ['it is undefined', '#<args[0].items[*].sku>', [{ items: [{ sku: 'a' }, {}] }]],
      ['is an empty list', '#<args[0].items[*].sku>', [{ items: [] }]],
      ['it is undefined', '#<this.missing>', []],
    ])('%s: %s', (reason, template, args) => {
      const call = () => names(`order:${template}`, ...args);
      expect(call).toThrow(LockKeyError);
      expect(call).toThrow(`Shop.sell: ${template} of the key 'order:${template}'`);
      expect(call).toThrow(reason);
    });

    it('reaches nothing through prototypes but accessors', () => {
      expect(() => names('#<args[0].total>', new Order(1))).toThrow('it is undefined');
      expect(() => names('#<args[0].toString>', {})).toThrow('it is undefined');
      expect(() => names('#<args[0].hasOwnProperty>', new Order(1))).toThrow('it is undefined');
      Object.defineProperty(Object.prototype, 'polluted', { get: () => 'everybody', configurable: true });
      expect(() => names('#<args[0].polluted>', new Order(1))).toThrow('it is undefined');
      delete (Object.prototype as { polluted?: string }).polluted;
    });
  });
});
