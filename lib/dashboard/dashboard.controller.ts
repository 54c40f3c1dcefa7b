import {
  Controller,
  Get,
  HttpException,
  Param,
  Post,
  Query,
  Req,
  Res,
  type Type,
  UseGuards,
  VERSION_NEUTRAL,
} from '@nestjs/common';
import { parseBoardQuery } from './board-query.js';
import type { RedisLockDashboardOptions } from './dashboard.options.js';
import { HostGuard } from './host.guard.js';
import { type HttpRequest, type HttpResponse, lastOfConnection, send, sendJson, sendStreamHead } from './http.js';
import { LockBoard } from './lock-board.js';
import { PAGE_FILES } from './page.generated.js';

/** The metadata that hides a controller from @nestjs/swagger. */
const NOT_IN_SWAGGER = 'swagger/apiExcludeController';

type Parameters = Readonly<Record<string, unknown>>;

/**
 * The page at `path`, its files and its data. Each dashboard has its own controller, because paths and guards belong to
 * the class.
 */
export function createDashboardController(options: RedisLockDashboardOptions): Type {
  const { path, guards = [] } = options;
  @Controller({ path, version: VERSION_NEUTRAL })
  @UseGuards(new HostGuard(options), ...guards)
  class RedisLockDashboardController {
    constructor(private readonly board: LockBoard) {}

    @Get()
    page(@Req() request: HttpRequest, @Res() response: HttpResponse): void {
      this.endWhenClosed(response);
      const { type, text } = PAGE_FILES['index.html'];
      send(response, 200, text.replaceAll('{{base}}', baseOf(request)), { 'content-type': type });
    }

    @Get('page/:file')
    file(@Param('file') name: string, @Req() { headers }: HttpRequest, @Res() response: HttpResponse): void {
      this.endWhenClosed(response);
      const file = Object.hasOwn(PAGE_FILES, name) ? PAGE_FILES[name] : undefined;
      if (file === undefined) return sendJson(response, 404, { statusCode: 404, message: 'There is no such file' });
      const { type, etag, text } = file;
      const caching = { etag, 'cache-control': 'private, no-cache' };
      if (headers['if-none-match'] === etag) send(response, 304, '', caching);
      else send(response, 200, text, { ...caching, 'content-type': type });
    }

    @Get('api/board')
    show(@Query() query: Parameters, @Res() response: HttpResponse): Promise<void> {
      return this.answer(response, () => this.board.show(parseBoardQuery(query)));
    }

    @Get('api/stream')
    stream(@Query() query: Parameters, @Req() { method }: HttpRequest, @Res() response: HttpResponse): void {
      try {
        const parsed = parseBoardQuery(query);
        if (method === 'HEAD') sendStreamHead(response);
        else this.board.stream(response, parsed);
      } catch (error) {
        this.endWhenClosed(response);
        sendError(response, error);
      }
    }

    @Post('api/locks/:name/release')
    release(@Param('name') name: string, @Req() request: HttpRequest, @Res() response: HttpResponse): Promise<void> {
      return this.answer(response, () => this.released(request, name));
    }

    /** For a name that a path cannot contain, such as `..` or a long one. The name is in the body. */
    @Post('api/release')
    releaseNamed(@Req() request: HttpRequest, @Res() response: HttpResponse): Promise<void> {
      return this.answer(response, () => this.released(request));
    }

    private async released(request: HttpRequest, name?: string): Promise<object> {
      await this.board.release(request, name);
      return { released: true };
    }

    private async answer(response: HttpResponse, body: () => Promise<object | string>): Promise<void> {
      try {
        const answered = await body();
        this.endWhenClosed(response);
        sendJson(response, 200, answered);
      } catch (error) {
        this.endWhenClosed(response);
        sendError(response, error);
      }
    }

    /** A server closes when its connections end, and a page that keeps polling would keep its connection open. */
    private endWhenClosed(response: HttpResponse): void {
      if (this.board.isClosed) lastOfConnection(response);
    }
  }
  Reflect.defineMetadata(NOT_IN_SWAGGER, [true], RedisLockDashboardController);
  return RedisLockDashboardController;
}

/** The path of the page's files, relative to the page. This works below any prefix, even one that a proxy removes. */
function baseOf({ originalUrl, url }: HttpRequest): string {
  const [path] = (originalUrl ?? url).split('?');
  const last = path.slice(path.lastIndexOf('/') + 1);
  return last === '' ? '.' : `./${last.replace(/[^\w.~%-]/g, encodeURIComponent)}`;
}

function sendError(response: HttpResponse, error: unknown): void {
  if (!(error instanceof HttpException)) throw error;
  const statusCode = error.getStatus();
  sendJson(response, statusCode, { statusCode, message: error.message });
}
