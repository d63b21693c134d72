import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { forward } from '../../src/addon/guard/forward.ts'
import { Upstream } from '../../src/addon/guard/upstream.ts'
import { systemClock } from '../../src/core/index.ts'
import { endToEndHeaders } from '../../src/http/index.ts'

/** The guard's way to the add-on without its checks: whoever asks is let through as he is. */
const upstream = new Upstream({ host: '127.0.0.1', port: Number(process.argv[2]) }, systemClock)

const lingerMs = 1_000

const server = createServer({ keepAliveTimeout: 90_000 }, (request, response) => {
  const headers = endToEndHeaders(request.rawHeaders)
  const read = { authorization: undefined, headers, isChunked: false, hasLength: false }
  forward({ upstream, request, response, read, identity: [], lingerMs }).catch(() =>
    response.destroy(),
  )
})

server.listen(0, '127.0.0.1', () => {
  console.log(JSON.stringify({ listening: (server.address() as AddressInfo).port }))
})
process.once('SIGTERM', () => process.exit())
