import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  createKubeClient,
  RemoteClusterView,
  transportFromKubeconfig,
} from '../../src/client/index.ts'
import { parseKubeconfig, resolveContext } from '../../src/kubeconfig/index.ts'
import {
  type ClusterViewFixture,
  describeClusterView,
} from '../../src/testing/cluster-view.suite.ts'
import { startSallyport } from '../support/sallyport-process.ts'

const token = 'a-token-of-jane'

async function open(): Promise<ClusterViewFixture> {
  const directory = await mkdtemp(join(tmpdir(), 'cluster-view-'))
  const tokenFile = join(directory, 'tokens.csv')
  await writeFile(tokenFile, `${token},jane,1,people\n`, { mode: 0o600 })
  const server = await startSallyport({ args: ['--token-auth-file', tokenFile] })
  const config = await parseKubeconfig(await readFile(server.kubeconfig, 'utf8'), server.kubeconfig)
  const transport = await transportFromKubeconfig(resolveContext(config))
  return {
    view: new RemoteClusterView(createKubeClient({ transport })),
    async close() {
      transport.destroy()
      await server.stop()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

describeClusterView('our server, through the client', open, {
  token: () => ({ value: token, username: 'jane' }),
})
