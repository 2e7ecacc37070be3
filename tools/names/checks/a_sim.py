import sys,ast,re; sys.path.insert(0,"/tmp/h/ren")
src=open("/tmp/h/ren/lsp.py").read(); i=src.index("def find("); ns={}
exec("import ast,re\nfrom pathlib import Path\n"+src[i:],ns); find=ns["find"]
from pathlib import Path
R=Path("/tmp/measure/sim")
def scopes(t):
    """map Name/arg node -> binding scope node"""
    res={}
    def binds(fn):
        b=set()
        if isinstance(fn,(ast.FunctionDef,ast.Lambda)):
            a=fn.args
            b|={x.arg for x in [*a.posonlyargs,*a.args,*a.kwonlyargs,*([a.vararg] if a.vararg else []),*([a.kwarg] if a.kwarg else [])]}
            body=fn.body if isinstance(fn.body,list) else [fn.body]
        elif isinstance(fn,ast.Module): body=fn.body
        else: body=[g.target for g in fn.generators]
        def w(n):
            if isinstance(n,(ast.FunctionDef,ast.ClassDef)): b.add(n.name); return
            if isinstance(n,(ast.Lambda,ast.ListComp,ast.SetComp,ast.GeneratorExp,ast.DictComp)):
                for z in ast.walk(n):
                    if isinstance(z,ast.NamedExpr): b.add(z.target.id)
                return
            if isinstance(n,ast.Name) and isinstance(n.ctx,ast.Store): b.add(n.id)
            if isinstance(n,(ast.Import,ast.ImportFrom)):
                for al in n.names: b.add(al.asname or al.name.split(".")[0])
            if isinstance(n,ast.ExceptHandler) and n.name: b.add(n.name)
            for c in ast.iter_child_nodes(n): w(c)
        for x in body: w(x)
        return b
    def resolve(name,chain):
        for s,b in reversed(chain):
            if name in b: return s
        return None
    def visit(n,chain):
        if isinstance(n,ast.FunctionDef):
            for d in [*n.decorator_list,*n.args.defaults,*[k for k in n.args.kw_defaults if k]]: visit(d,chain)
            for x in [*n.args.posonlyargs,*n.args.args,*n.args.kwonlyargs]:
                if x.annotation: visit(x.annotation,chain)
            ch=chain+[(n,binds(n))]
            for x in ast.walk(n.args):
                if isinstance(x,ast.arg): res[x]=n
            for s in n.body: visit(s,ch)
            return
        if isinstance(n,ast.Lambda):
            for d in n.args.defaults: visit(d,chain)
            ch=chain+[(n,binds(n))]
            for x in n.args.args: res[x]=n
            visit(n.body,ch); return
        if isinstance(n,(ast.ListComp,ast.SetComp,ast.GeneratorExp,ast.DictComp)):
            visit(n.generators[0].iter,chain)
            ch=chain+[(n,binds(n))]
            for k,g in enumerate(n.generators):
                visit(g.target,ch)
                if k: visit(g.iter,ch)
                for c in g.ifs: visit(c,ch)
            for x in ([n.key,n.value] if isinstance(n,ast.DictComp) else [n.elt]): visit(x,ch)
            return
        if isinstance(n,ast.Name): res[n]=resolve(n.id,chain)
        for c in ast.iter_child_nodes(n): visit(c,chain)
    for s in t.body: visit(s,[(t,binds(t))])
    return res
bad=0; ok=0
for l in open("/tmp/measure/map-A.txt"):
    if l.startswith("#"):
        if "--- 2" in l: break
    elif "find_host_limits" in l: continue
    if l.startswith("#"):
        continue
    f,rest=l.strip().split(" :: "); d,n=rest.split(" -> "); lam="lambda" in n; n=n.split()[0]
    p=R/f; text=p.read_text(); t=ast.parse(text); res=scopes(t)
    try:
        line,col=find(p,d); 
    except KeyError:
        if lam:
            q,old=d.split(":"); parts=q.split("."); body=t.body
            for x in parts: node=next(k for k in body if isinstance(k,(ast.FunctionDef,ast.ClassDef)) and k.name==x); body=node.body
            a_=next((z for lm in ast.walk(node) if isinstance(lm,ast.Lambda) for z in lm.args.args if z.arg==old),None)
            if a_ is None: print("NOLAMBDA",l.strip()); bad+=1; continue
            line,col=a_.lineno-1,a_.col_offset
        else: print("NOTFOUND",l.strip()); bad+=1; continue
    node=next((z for z in res if z.lineno-1==line and len(text.split("\n")[line].encode()[:z.col_offset].decode())==col and (getattr(z,"id",None) or getattr(z,"arg",None))==re.split(r"[(:]",d)[1].rstrip(")")),None)
    if node is None: print("NONODE",l.strip(),line,col); bad+=1; continue
    sc=res[node]; old=getattr(node,"id",None) or node.arg
    # capture check
    for z,s in res.items():
        if (getattr(z,"id",None) or getattr(z,"arg",None))==n and s is sc: print("CAPTURE",l.strip()); bad+=1; break
    L=text.split("\n"); pos=sorted([(z.lineno-1,z.col_offset) for z,s in res.items() if s is sc and (getattr(z,"id",None) or getattr(z,"arg",None))==old],reverse=True)
    before={}
    for i,c in pos: L[i]=L[i][:c]+n+L[i][c+len(old):]
    new="\n".join(L); t2=ast.parse(new); r2=scopes(t2)
    k1=[ (type(s).__name__,getattr(s,"lineno",0)) if s else None for z,s in sorted(res.items(),key=lambda e:(e[0].lineno,e[0].col_offset))]
    k2=[ (type(s).__name__,getattr(s,"lineno",0)) if s else None for z,s in sorted(r2.items(),key=lambda e:(e[0].lineno,e[0].col_offset))]
    if k1!=k2: print("MEANING",l.strip()); bad+=1
    p.write_text(new); ok+=1
print(ok,bad)
