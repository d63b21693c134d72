import type {
  ExtraResource,
  ExtraSubresource,
  IssueToken,
  ResourceHandler,
} from '../../api/index.ts'
import type { Feature, FeatureContext, FeatureParts } from '../feature.ts'
import type { UpgradeHandler } from '../pipeline-parts.ts'
import { directDialer } from './direct-dialer.ts'

/** What all features together add to the server. */
export interface OpenFeatures
  extends Required<
    Omit<FeatureParts, 'subresources' | 'resources' | 'issueToken' | 'onListening' | 'dialer'>
  > {
  /** By `group/version/resource/subresource`. */
  readonly extensions: ReadonlyMap<string, ResourceHandler>
  readonly upgrades: ReadonlyMap<string, UpgradeHandler>
  readonly extras: readonly ExtraSubresource[]
  readonly live: readonly ExtraResource[]
  readonly issueToken?: IssueToken | undefined
  /** Tells all features that the port is open. */
  listening(): Promise<void>
}

/** Opens the features one after another. */
export async function openFeatures(
  features: readonly Feature[],
  context: Omit<FeatureContext, 'dialer' | 'apiAudiences'>,
): Promise<OpenFeatures> {
  const opened: FeatureParts[] = []
  let dialer = directDialer()
  const apiAudiences = () => opened.flatMap((parts) => parts.apiAudiences?.() ?? [])
  for (const feature of features) {
    const parts = await feature({ ...context, dialer, apiAudiences })
    dialer = parts.dialer ?? dialer
    opened.push(parts)
  }
  const subresources = opened.flatMap((parts) => parts.subresources ?? [])
  const resources = opened.flatMap((parts) => parts.resources ?? [])
  return {
    tokens: opened.flatMap((parts) => parts.tokens ?? []),
    routes: opened.flatMap((parts) => parts.routes ?? []),
    admissions: opened.flatMap((parts) => parts.admissions ?? []),
    controllers: opened.flatMap((parts) => parts.controllers ?? []),
    anonymousPaths: opened.flatMap((parts) => parts.anonymousPaths ?? []),
    apiAudiences,
    issueToken: opened.find((parts) => parts.issueToken)?.issueToken,
    places: () => Object.assign({}, ...opened.map((parts) => parts.places?.())),
    listening: async () => {
      for (const parts of opened) await parts.onListening?.()
    },
    extensions: new Map([
      ...subresources.map(({ entry, handle }) => [pathOf(entry), handle] as const),
      ...resources.map(({ entry, handle }) => [pathOf({ ...entry, name: '' }), handle] as const),
    ]),
    upgrades: new Map(
      subresources.flatMap(({ entry, upgrade }) => (upgrade ? [[pathOf(entry), upgrade]] : [])),
    ),
    extras: subresources.map(({ entry }) => entry),
    live: resources.map(({ entry }) => entry),
  }
}

const pathOf = ({
  group,
  version,
  resource,
  name,
}: Pick<ExtraSubresource, 'group' | 'version' | 'resource' | 'name'>): string =>
  `${group}/${version}/${resource}/${name}`
