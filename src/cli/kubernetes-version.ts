import process from 'node:process'
import type { VersionInfo } from '../server/index.ts'
import { packageVersion } from './package-version.ts'

/** The version of the Kubernetes API that we serve, as clients check it, with our own behind the plus. */
const served = { major: '1', minor: '36', patch: '3' }

/** What `/version` says. */
export async function kubernetesVersion(): Promise<VersionInfo> {
  const { major, minor, patch } = served
  return {
    major,
    minor,
    gitVersion: `v${major}.${minor}.${patch}+sallyport.${await packageVersion()}`,
    gitCommit: '',
    gitTreeState: 'clean',
    buildDate: '1970-01-01T00:00:00Z',
    goVersion: `node${process.versions.node}`,
    compiler: 'v8',
    platform: `${process.platform}/${process.arch === 'x64' ? 'amd64' : process.arch}`,
  }
}
