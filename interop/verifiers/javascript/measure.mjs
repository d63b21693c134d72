// Signs or verifies tokens with jose for some seconds. Its order is JSON on stdin, its result a line of JSON.
import { createPrivateKey } from 'node:crypto'
import process from 'node:process'
import { json } from 'node:stream/consumers'
import { createLocalJWKSet, jwtVerify, SignJWT } from 'jose'

const inFlight = 16
const order = await json(process.stdin)
const { issuer, audience, alg, kid, claims, tokens } = order

const operations = {
  sign() {
    const key = createPrivateKey(order.privatePem)
    return () => new SignJWT(claims).setProtectedHeader({ alg, kid }).sign(key)
  },
  verify() {
    // What createRemoteJWKSet does once it has fetched the set.
    const keys = createLocalJWKSet(order.jwks)
    const demands = { issuer, audience, algorithms: [alg] }
    return (number) => jwtVerify(tokens[number % tokens.length], keys, demands)
  },
}
const operation = operations[order.op]()

async function repeat(ms) {
  const began = performance.now()
  const cpu = process.cpuUsage()
  let count = 0
  const one = async () => {
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
const result = await repeat(order.seconds * 1000)
process.stdout.write(`${JSON.stringify(result)}\n`)
