export { type FieldSelector, parseFieldSelector, type SelectableKind } from './field-selector.ts'
export type { Labels } from './label-requirement.ts'
export {
  type LabelSelector,
  labelSelectorFromSet,
  parseLabelSelector,
} from './label-selector.ts'
