import { once } from 'node:events'
import { expect, test } from 'vitest'
import { ResponseBody } from './upstream.ts'

test('a response in single bytes waits for its reader in few pieces [SEC-R607]', async () => {
  const sent = Buffer.alloc(100_000, 'abcdefghijk')
  const body = new ResponseBody({ pause: () => {}, resume: () => {}, cancel: () => {} })
  for (const byte of sent) body.receive(Buffer.from([byte]))
  body.finish()
  const pieces: Buffer[] = []
  body.on('data', (piece: Buffer) => pieces.push(piece))
  await once(body, 'end')
  expect([Buffer.concat(pieces).equals(sent), pieces.length < 20]).toEqual([true, true])
})
