import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { expect, test } from 'vitest'

const src = join(import.meta.dirname, '..')

/**
 * Files of `src/` that read files without the functions of `trusted-files.ts`, and why they may. What
 * grants something to those who write it, or is secret, is read with one of those.
 */
const readers: Readonly<Record<string, string>> = {
  'core/files.ts': 'the reader itself',
  'core/trusted-files.ts': 'the reader itself',
  // As kubectl reads them: for the user who runs the command, with the rights of that user.
  'kubeconfig/load.ts': 'kubeconfig of the user',
  'kubeconfig/edit.ts': 'kubeconfig of the user',
  'kubeconfig/kuberc.ts': 'kuberc of the user',
  'kubeconfig/in-cluster.ts': 'files of the Pod, by root',
  'credentials/exec/run-plugin.ts': 'first bytes of a plugin that could not be run',
  'credentials/credential-file.ts': 'files that a kubeconfig names',
  'credentials/sources/oidc-refresh.ts': 'kubeconfig of the user',
  'credentials/exec-plugin/private-files.ts': 'has the checks itself',
  'core/file-lock.ts': 'lock',
  'bootstrap/discovery/system-roots.ts': 'roots of the system',
  'bootstrap/refresh/refresh-location.ts': 'CA of a client',
  'cli/issuer/token-input.ts': 'token to verify',
  'cli/join/plan.ts': 'token of a client',
  'cli/join/files.ts': 'has the checks itself',
  'cli/up/addon-process.ts': 'addons.kubeconfig in the data directory, checked at start',
  'cli/up/packaged-addon.ts': 'part of the package',
  'cli/version.ts': 'part of the package',
  // In the data directory, whose entries are checked at start.
  'apiserver/data-directory/index.ts': 'format-version',
  'apiserver/startup/admin-kubeconfig.ts': 'admin.kubeconfig, replaced unless it is ours',
  'apiserver/audit/log.ts': 'audit.log, written only',
  'pki/pki-files.ts': 'certificates in pki/',
  'storage/directory-lock.ts': 'lock',
  'storage/embedded/file-system.ts': 'files of the store',
  // Public by nature, or verified after reading.
  'tunnel/agent/servers/server-count.ts': 'kubeconfig of an agent',
  'issuer/publish/write-documents.ts': 'compares what it has written',
  'local-proxy/static-files.ts': 'files to be shown',
}

const isProduct = (path: string): boolean =>
  path.endsWith('.ts') && !/\.(?:test|suite)\.ts$/.test(path)
const reads =
  /import \{[^}]*\b(?:readFile|readFileSync|createReadStream|open|openSync|readFileIfPresent)\b[^}]*\} from/

test('every file that reads files without a check of who wrote them has its reason [SEC-R1707]', () => {
  const found = readdirSync(src, { recursive: true, encoding: 'utf8' })
    .filter((path) => isProduct(path) && !path.startsWith('testing/'))
    .filter((path) => reads.test(readFileSync(join(src, path), 'utf8')))
    .map((path) => relative('.', path))
  expect(found.toSorted()).toEqual(Object.keys(readers).toSorted())
})
