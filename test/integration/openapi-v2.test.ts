import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { HttpsCaller } from '../support/https-caller.ts'
import { type InProcessServer, startInProcess } from '../support/in-process-server.ts'

describe('/openapi/v2 [GND-R65]', () => {
  const protobuf = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf'
  const asKubectl = { accept: protobuf.replace('v2.v1', 'v2@v1') }
  let server: InProcessServer
  let admin: HttpsCaller

  beforeAll(async () => {
    server = await startInProcess()
    admin = await server.admin()
  })
  afterAll(() => server.close())

  const ask = (headers: Record<string, string>, method = 'GET') =>
    admin.request('/openapi/v2', { method, headers })

  test.each([
    ['jane', 200],
    ['system:anonymous', 403],
  ])('%s gets %i, as for v3', async (user, code) => {
    const acting = { 'impersonate-user': user }
    expect((await ask(acting)).status).toBe(code)
    expect((await admin.request('/openapi/v3', { headers: acting })).status).toBe(code)
  })

  test('HEAD has the headers of GET and no body', async () => {
    const got = await ask(asKubectl)
    const { status, headers, text } = await ask(asKubectl, 'HEAD')
    expect({ status, text }).toEqual({ status: 200, text: '' })
    expect(headers).toMatchObject({
      'content-type': protobuf,
      'content-length': got.headers['content-length'],
      etag: got.headers.etag,
    })
  })

  test('whoever has it gets a 304, whoever takes neither form a 406', async () => {
    const { headers } = await ask({ ...asKubectl, 'accept-encoding': 'gzip' })
    expect(headers).toMatchObject({ 'content-type': protobuf, 'content-encoding': 'gzip' })
    const again = await ask({ ...asKubectl, 'if-none-match': String(headers.etag) })
    expect(again.status).toBe(304)
    const refused = await ask({ accept: 'text/html' })
    expect(refused.object).toMatchObject({ kind: 'Status', code: 406, reason: 'NotAcceptable' })
  })

  test('it is listed, and only read', async () => {
    expect((await admin.get('/')).object['paths']).toContain('/openapi/v2')
    expect((await ask({}, 'POST')).status).toBe(405)
  })
})
