import ast,sys,collections
from pathlib import Path
root=Path("/work/main")
WORDS=set(sys.argv[2].split(","))
def scan(p):
    t=ast.parse(p.read_text()); out=[]
    def visit(node,q):
        for n in ast.iter_child_nodes(node):
            if isinstance(n,ast.ClassDef): visit(n,q+[n.name])
            elif isinstance(n,(ast.FunctionDef,ast.AsyncFunctionDef)):
                qq=q+[n.name]; a=n.args
                for x in [*a.posonlyargs,*a.args,*a.kwonlyargs]:
                    if x.arg in WORDS: out.append((".".join(qq),"P",x.arg,ast.unparse(x.annotation) if x.annotation else ""))
                body(n,qq); visit(n,qq)
            elif not isinstance(n,(ast.Lambda,)): visit(n,q)
    def body(fn,q):
        seen=collections.Counter()
        def w(n,scope):
            for c in ast.iter_child_nodes(n):
                if isinstance(c,(ast.FunctionDef,ast.ClassDef)): continue
                if isinstance(c,(ast.ListComp,ast.SetComp,ast.GeneratorExp,ast.DictComp)): w(c,id(c)); continue
                if isinstance(c,ast.Lambda):
                    for x in c.args.args:
                        if x.arg in WORDS: seen[(x.arg,id(c),"L")]+=1
                    w(c,id(c)); continue
                if isinstance(c,ast.Name) and isinstance(c.ctx,ast.Store) and c.id in WORDS: seen[(c.id,scope,"")]+=1
                w(c,scope)
        w(fn,id(fn))
        ps={x.arg for x in [*fn.args.args,*fn.args.kwonlyargs]}
        r=collections.Counter()
        for (nm,sc,k) in seen:
            if sc==id(fn) and nm in ps: continue
            r[(nm,k)]+=1
        for (nm,k),c in r.items(): out.append((".".join(q),"V"+k,nm,str(c)))
    visit(t,[])
    return out
for g in sys.argv[1].split(","):
    for p in sorted(root.glob(f"shared/{g}/**/*.py")):
        for o in scan(p): print(str(p.relative_to(root))[7:],*o)
