import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { malformedFieldsOf, requestsWith } from '../support/http2-frames.ts'
import { type Kubectl, kubectlAt } from '../support/kubectl.ts'
import { findNode } from '../support/node-versions.ts'
import { findKubectl, pathOrReason } from '../support/peers.ts'
import { type SallyportProcess, startSallyport } from '../support/sallyport-process.ts'

const kubectlPath = pathOrReason(findKubectl('1.36'))
const nodes = [20, 22, 24].map((major) => ({ major, node: pathOrReason(findNode(major)) }))

describe.each(nodes)('a server on Node.js $major', ({ node }) => {
  let server: SallyportProcess
  let scratch: string
  let kubectl: Kubectl
  const isHere = node !== undefined && kubectlPath !== undefined

  beforeAll(async () => {
    if (!node || !kubectlPath) return
    scratch = await mkdtemp(join(tmpdir(), 'sallyport-impersonation-'))
    server = await startSallyport({ node })
    kubectl = kubectlAt(kubectlPath, server.kubeconfig, join(scratch, 'cache'))
  })
  afterAll(async () => {
    await server?.stop()
    if (scratch) await rm(scratch, { recursive: true, force: true })
  })

  test.skipIf(!isHere).each([
    ['a space behind', 'nobody '],
    ['a space before', ' nobody'],
    ['a tab behind', 'nobody\t'],
    ['a tab before', '\tnobody'],
    ['a line break', 'nobody\n'],
    ['a carriage return', 'nobody\r'],
    ['a control character', 'nobody\u0001'],
    ['a DEL', 'nobody\u007f'],
    ['an accent', 'nobod\u00fd'],
    ['only a space', ' '],
  ])('never runs kubectl --as with %s as the administrator [SEC-R301]', async (_what, name) => {
    const { code, stdout } = await kubectl.outcome(`auth can-i list secrets -A --as='${name}'`)
    expect([code, stdout.includes('yes')]).toEqual([1, false])
    expect(await kubectl('auth can-i list secrets -A')).toContain('yes')
  })

  test.skipIf(!isHere)('serves no request whose credential it drops [SEC-R302]', async () => {
    const { hostname, port } = new URL(server.server)
    const socket = connect({
      host: hostname,
      port: Number(port),
      rejectUnauthorized: false, // the test is about headers, and the server is a child of the test
      ALPNProtocols: ['h2', 'http/1.1'],
    })
    await once(socket, 'secureConnect')
    // Open to anonymous users: 200 means that the wrong credential was ignored. Where HTTP/2 is not
    // offered, the server takes the first frame for a malformed request and closes the connection.
    const fields = malformedFieldsOf('authorization', 'Bearer wrong')
    const lists = fields.map((field) => [field])
    expect(await requestsWith(socket, () => '/version', lists)).not.toContain('ok')
    socket.destroy()
  })
})
