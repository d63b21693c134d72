import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createUpstream, forwardPolicy as policy } from '../../src/addon/guard/upstream.ts'
import { systemClock } from '../../src/core/index.ts'
import { forward, forwarderHeaders } from '../../src/http/forward/index.ts'
import { endToEndHeaders, withoutHeaders } from '../../src/http/index.ts'

/** The guard's forwarder without its checks: every request is forwarded as it is. */
const upstream = createUpstream({ host: '127.0.0.1', port: Number(process.argv[2]) }, systemClock)

const server = createServer({ keepAliveTimeout: 90_000 }, (request, response) => {
  const headers = withoutHeaders(endToEndHeaders(request.rawHeaders), (name) =>
    forwarderHeaders.has(name.toLowerCase()),
  )
  const path = request.url ?? '/'
  forward(request, response, { upstream, path, headers, policy, lingerMs: 1_000 }).catch(() =>
    response.destroy(),
  )
})

server.listen(0, '127.0.0.1', () => {
  console.log(JSON.stringify({ listening: (server.address() as AddressInfo).port }))
})
process.once('SIGTERM', () => process.exit())
