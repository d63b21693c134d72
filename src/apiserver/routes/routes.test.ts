import { afterEach, describe, expect, test } from 'vitest'
import { depsWith, type Running, serve } from '../pipeline/pipeline.suite.ts'
import { type PathRoute, PathRoutes, send } from './route.ts'

const running: Running[] = []
afterEach(async () => {
  await Promise.all(running.splice(0).map((server) => server.stop()))
})

const says =
  (text: string): PathRoute['handle'] =>
  (_request, response) =>
    send(response, 'text/plain', text)

const routes: PathRoute[] = [
  { path: '/version', handle: says('version') },
  { path: '/openapi/v3', handle: says('index') },
  { path: '/openapi/v3/*', handle: says('below') },
  { path: '/openapi/*', handle: says('openapi') },
  { path: '/hidden', listed: false, handle: says('hidden') },
  { path: '/form', methods: ['GET', 'POST'], handle: says('form') },
  { path: '/inbox', methods: ['POST'], handle: says('inbox') },
]

async function ask(path: string, method = 'GET') {
  const table = new PathRoutes(routes)
  const paths: PathRoute['handle'] = (...args) => table.handle(...args)
  const server = await serve('HTTP/1.1', depsWith({ paths }))
  running.push(server)
  return server.ask(path, { method, headers: { authorization: 'Bearer ann' } })
}

describe('a path is answered by the closest route', () => {
  test.each([
    ['/version', 'version'],
    ['/openapi/v3', 'index'],
    ['/openapi/v3/api/v1', 'below'],
    ['/openapi/v2', 'openapi'],
    ['/hidden', 'hidden'],
  ])('%s', async (path, text) => {
    expect((await ask(path)).text).toBe(text)
  })
})

test('/ lists the paths that can be asked for, sorted', async () => {
  expect((await ask('/')).status).toEqual({
    paths: ['/form', '/inbox', '/openapi/v3', '/version'],
  })
})

test.each(['/versions', '/version/', '/openapi', '/nothing'])('%s is a 404', async (path) => {
  const answer = await ask(path)
  expect(answer.status).toMatchObject({
    reason: 'NotFound',
    message: 'the server could not find the requested resource',
    code: 404,
  })
})

describe('methods', () => {
  test('HEAD goes with GET, without a body', async () => {
    const answer = await ask('/version', 'HEAD')
    expect([answer.code, answer.text, answer.headers['content-length']]).toEqual([200, '', '7'])
  })

  test.each([
    ['/version', 'POST', 'GET, HEAD'],
    ['/form', 'DELETE', 'GET, POST, HEAD'],
    ['/inbox', 'GET', 'POST'],
    ['/inbox', 'HEAD', 'POST'],
  ])('%s does not take %s', async (path, method, allow) => {
    const answer = await ask(path, method)
    expect([answer.code, answer.headers['allow']]).toEqual([405, allow])
  })
})
