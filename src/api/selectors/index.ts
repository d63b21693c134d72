export { type FieldSelector, parseFieldSelector, type SelectableKind } from './field-selector.ts'
export type { Labels } from './label-selector.ts'
export {
  type LabelSelector,
  labelSelectorFromSet,
  parseLabelSelector,
} from './label-selector.ts'
