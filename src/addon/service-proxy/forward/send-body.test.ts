import { once } from 'node:events'
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { type Passing, sendStream } from './send-body.ts'

test('a body that broke off together with its head breaks off at the client', async () => {
  const body = new Readable({ read() {} })
  body.destroy()
  await once(body, 'close')
  const response = new ServerResponse(new IncomingMessage(new Socket()))
  const { signal } = new AbortController()
  const forwarding = { meters: { toBackend: () => 0, toClient: () => 0 }, signal }
  const passing = { forwarding, response, pageCoding: undefined, trailers: [] }
  void sendStream(passing as unknown as Passing, body)
  expect(response.destroyed).toBe(true)
})
