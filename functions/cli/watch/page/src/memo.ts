import { Component, h, type FunctionComponent } from "preact";

/** A component that is drawn again only when `same` says that its properties differ. */
export function memo<P extends object>(
  inner: FunctionComponent<P>,
  same: (before: P, after: P) => boolean,
): FunctionComponent<P> {
  class Memo extends Component<P> {
    override shouldComponentUpdate(after: P): boolean {
      return !same(this.props as P, after);
    }

    override render() {
      return h(inner, this.props as P);
    }
  }
  return Memo as unknown as FunctionComponent<P>;
}
