import { createPrivateKey } from 'node:crypto'
import { json } from 'node:stream/consumers'
import {
  audiencesOf,
  checkTimes,
  KeySet,
  parseClaims,
  parseCompactJws,
  signCompactJwsAsync,
  signingKey,
  textClaim,
} from '../../src/jose/index.ts'
import type { TokenOrder } from './token-order.ts'

/** Signs or verifies tokens as the server does, for some seconds. Its order is JSON on stdin, its result a line of JSON. */

const inFlight = 16
const order = (await json(process.stdin)) as TokenOrder
const key = signingKey(createPrivateKey(order.privatePem))

const operations = {
  sign() {
    const header = { kid: key.kid }
    return () => signCompactJwsAsync(header, JSON.stringify(order.claims), key)
  },
  verify() {
    const keys = new KeySet([key.publicKey])
    return async (number: number) => {
      const jws = parseCompactJws(order.tokens[number % order.tokens.length] ?? '')
      keys.verify(jws)
      const claims = parseClaims(jws.payload)
      const isOurs = textClaim(claims, 'iss') === order.issuer
      if (!isOurs || !audiencesOf(claims)?.includes(order.audience)) throw new Error('not for us')
      checkTimes(claims, { nowMs: Date.now(), leewaySeconds: 60 })
    }
  },
}
const operation = operations[order.op]()

async function repeat(ms: number): Promise<{ perSecond: number; perCpuSecond: number }> {
  const began = performance.now()
  const cpu = process.cpuUsage()
  let count = 0
  const one = async (): Promise<void> => {
    while (performance.now() - began < ms) await operation(count++)
  }
  await Promise.all(Array.from({ length: inFlight }, one))
  const { user, system } = process.cpuUsage(cpu)
  return {
    perSecond: (count * 1000) / (performance.now() - began),
    perCpuSecond: (count * 1e6) / (user + system),
  }
}

await repeat(500)
console.log(JSON.stringify(await repeat(order.seconds * 1000)))
